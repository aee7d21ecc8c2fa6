package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Ready finds out within seconds whether this machine can carry out the run. It starts no server
// and gets no binary. The facts say for people what the machine has. An error says what is missing
// and what to do.
func (p *Plan) Ready(ctx context.Context) (facts []string, err error) {
	if err := p.backend.prepare(ctx, p); err != nil {
		return nil, err
	}
	if p.Spec.Backend != scenario.BackendLocal {
		return nil, nil
	}
	return p.binaries()
}

// binaries says which binaries of a run are in the cache, and which ones the run must get first.
func (p *Plan) binaries() ([]string, error) {
	there, missing, err := p.cached()
	if err != nil {
		return nil, err
	}
	var facts []string
	for _, group := range []struct {
		are  string
		refs []binaries.Ref
	}{{"are there", there}, {"the first run downloads or builds", missing}} {
		if len(group.refs) > 0 {
			facts = append(facts, "binaries that "+group.are+": "+names(group.refs))
		}
	}
	return facts, nil
}

// names lists binaries for people, in alphabetical order.
func names(refs []binaries.Ref) string {
	var all []string
	for _, ref := range refs {
		all = append(all, ref.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// cached returns the binaries of a run that are in the cache or the user's own, and those that the
// run must get first, each in the order in which a run gets them.
func (p *Plan) cached() (there, missing []binaries.Ref, err error) {
	cached, err := (&binaries.Store{}).List()
	if err != nil {
		return nil, nil, fmt.Errorf("%w; 'skewproof binaries prune' empties the cache", err)
	}
	own, err := OverridesOf(p.Spec.Binaries)
	if err != nil {
		return nil, nil, err
	}
	for _, ref := range p.needs().refs() {
		_, given := own[ref]
		if given || slices.ContainsFunc(cached, func(b binaries.Binary) bool {
			return b.Component == ref.Component && b.Version == string(ref.Version)
		}) {
			there = append(there, ref)
		} else {
			missing = append(missing, ref)
		}
	}
	return there, missing, nil
}
