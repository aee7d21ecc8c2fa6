package recorded

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/skewproof/skewproof/internal/history"
)

// maxCuts is how many small versions are kept of one version. A campaign uses a handful; a search that draws resources at random
// must not fill the memory with them.
const maxCuts = 256

// cuts are the small versions made of one version, by the positions of their resources in its document. The zero value is empty.
type cuts struct {
	mu   sync.Mutex
	made map[string]*Version
}

// Small returns the release cut down to the given resources, so that what costs time by the length of a document costs little. It
// has the same name and the same order. Resources are told by group, version and resource, and keep all their subresources. What
// the release does not serve is left out; with nothing left, both roots are empty lists.
//
// It is cached by the resources that are left, in whatever order they are given. After 256 different sets the cache starts anew, so
// that the same question may give another, equal Version. To make one of a whole release takes about a millisecond; who needs many
// cuts them from one that is small already. Safe for concurrent use. It panics if v is not from this package.
func (v *Version) Small(resources []history.GVR) *Version {
	var key []byte
	for i := range v.Document.Resources {
		if slices.Contains(resources, v.Document.Resources[i].GVR) {
			key = binary.AppendUvarint(key, uint64(i))
		}
	}
	v.cuts.mu.Lock()
	defer v.cuts.mu.Unlock()
	small, ok := v.cuts.made[string(key)]
	if !ok {
		var err error
		if small, err = v.only(v.Name, func(gvr history.GVR) bool { return slices.Contains(resources, gvr) }); err != nil {
			panic(fmt.Sprintf("recorded: %s: %v", v.Name, err)) // parse has read the same bytes
		}
		if v.cuts.made == nil || len(v.cuts.made) >= maxCuts {
			v.cuts.made = map[string]*Version{}
		}
		v.cuts.made[string(key)] = small
	}
	return small
}
