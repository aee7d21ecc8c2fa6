package recorded

import (
	"fmt"
	"slices"
	"sync"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
)

var lesser struct {
	mu    sync.Mutex
	known map[string]*Version
}

// less is a release with some of its APIs switched off.
func less(name string) (*Version, error) {
	r, err := release.Parse(name)
	if err != nil {
		return nil, err
	}
	whole, err := Get(r.Version)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Without {
		if !slices.ContainsFunc(whole.Document.Resources, func(o history.Resource) bool { return o.GVR.Group+"/"+o.GVR.Version == w }) {
			return nil, fmt.Errorf("release %s has no %s that could be switched off", r.Version, w)
		}
	}
	lesser.mu.Lock()
	defer lesser.mu.Unlock()
	if v := lesser.known[name]; v != nil {
		return v, nil
	}
	bodies := whole.Bodies
	for root, body := range whole.Bodies {
		bodies[root], err = cut(body, func(gvr history.GVR) bool { return r.Serves(gvr.Group, gvr.Version) })
		if err != nil {
			return nil, err
		}
	}
	v, err := parse(name, bodies)
	if err != nil {
		return nil, fmt.Errorf("make release %s: %w", name, err)
	}
	if lesser.known == nil {
		lesser.known = map[string]*Version{}
	}
	lesser.known[name] = v
	return v, nil
}
