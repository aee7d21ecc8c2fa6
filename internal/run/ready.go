package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/release"
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
	cached, err := (&binaries.Store{}).List()
	if err != nil {
		return nil, fmt.Errorf("%w; 'skewproof binaries prune' empties the cache", err)
	}
	own, err := OverridesOf(p.Spec.Binaries)
	if err != nil {
		return nil, err
	}
	refs := []binaries.Ref{{Component: binaries.Etcd, Version: binaries.Version(p.Spec.Etcd)}}
	for _, version := range p.Schedule.Versions() {
		refs = append(refs, binaries.Ref{Component: binaries.KubeAPIServer, Version: binaries.Version(release.Of(version))})
	}
	slices.SortFunc(refs, func(a, b binaries.Ref) int { return strings.Compare(a.String(), b.String()) })
	var there, missing []string
	for _, ref := range slices.Compact(refs) { // two releases may be one binary with different flags
		_, given := own[ref]
		if given || slices.ContainsFunc(cached, func(b binaries.Binary) bool {
			return b.Component == ref.Component && b.Version == string(ref.Version)
		}) {
			there = append(there, ref.String())
		} else {
			missing = append(missing, ref.String())
		}
	}
	var facts []string
	if len(there) > 0 {
		facts = append(facts, "binaries that are there: "+strings.Join(there, ", "))
	}
	if len(missing) > 0 {
		facts = append(facts, "binaries that the first run downloads or builds: "+strings.Join(missing, ", "))
	}
	return facts, nil
}
