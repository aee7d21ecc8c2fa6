package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// checkOwn refuses flags of the user's own that would break this plan. given returns the flags that
// the run gives the i-th server at a start.
func (p *Plan) checkOwn(given func(i int, s scenario.Server) ([]string, error)) error {
	var all []local.Start
	for i, server := range p.Schedule.Servers {
		for _, s := range starts(p.Schedule, server) {
			args, err := given(i, s)
			if err != nil {
				return err
			}
			all = append(all, local.Start{Server: s.Name, Version: s.Version, Setup: s.Setup, Args: args})
		}
	}
	return local.CheckOwn(p.Spec.own(), all)
}

// starts lists all ways in which a plan starts a server, beginning with its first start.
func starts(plan scenario.Plan, server scenario.Server) []scenario.Server {
	all, now := []scenario.Server{server}, server
	for _, s := range plan.Steps {
		if s.Server != server.Name || !slices.Contains([]scenario.Action{scenario.Start, scenario.Restart, scenario.Replace}, s.Action) {
			continue
		}
		now.Version, now.Setup = cmp.Or(s.Version, now.Version), s.Setup
		if !slices.ContainsFunc(all, func(had scenario.Server) bool {
			return had.Version == now.Version && had.Setup.String() == now.Setup.String()
		}) {
			all = append(all, now)
		}
	}
	return all
}

// apiservers returns the paths of the kube-apiservers of a run that are there already, by version:
// the user's own and those in the cache.
func (p *Plan) apiservers() (map[string]string, error) {
	all := map[string]string{}
	own, err := OverridesOf(p.Spec.Binaries)
	if err != nil {
		return nil, err
	}
	cached, err := (&binaries.Store{}).List()
	if err != nil {
		return nil, fmt.Errorf("%w; 'skewproof binaries prune' empties the cache", err)
	}
	for _, version := range p.Schedule.Versions() {
		ref := binaries.Ref{Component: binaries.KubeAPIServer, Version: binaries.Version(release.Of(version))}
		for _, b := range cached {
			if b.Component == ref.Component && b.Version == string(ref.Version) {
				all[version] = b.Path
			}
		}
		if path, ok := own[ref]; ok {
			all[version] = path
		}
	}
	return all, nil
}

// askOwn asks the kube-apiservers of the run whether they have the user's own flags. The error
// names the first flag that one of them refuses. The output names the versions that cannot be
// asked.
func (p *Plan) askOwn(ctx context.Context, apiservers map[string]string, out io.Writer) error {
	own := p.Spec.own()
	var ask [][]string // what is asked together
	var gates []string
	for _, f := range own.Flags {
		switch name, _, _ := strings.Cut(f, "="); name {
		case history.FeatureGates, "emulated-version", "min-compatibility-version":
			gates = append(gates, "--"+f) // the version decides which gates there are
		default:
			ask = append(ask, []string{"--" + f})
		}
	}
	if len(gates) > 0 {
		ask = append(ask, gates)
	}
	for _, version := range p.Schedule.Versions() {
		path, ok := apiservers[version]
		if !ok && len(ask) > 0 {
			fmt.Fprintf(out, "Not checked: whether kube-apiserver %s has the flags of --kube-apiserver-flag, because it is not in the cache yet.\n\n",
				version)
		}
		if !ok {
			continue
		}
		for _, flags := range ask {
			refused := binaries.Takes(ctx, path, flags...)
			if refused == nil {
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			has, err := binaries.Flags(ctx, path)
			if err != nil {
				return fmt.Errorf("ask kube-apiserver %s for its flags: %w", version, err)
			}
			hint := ""
			if name, _, _ := strings.Cut(strings.TrimPrefix(flags[0], "--"), "="); len(flags) == 1 && !slices.Contains(has, name) {
				hint = fault.Nearest(name, has)
			}
			return Usagef("--kube-apiserver-flag %s: kube-apiserver %s refuses it: %w%s",
				strings.TrimPrefix(strings.Join(flags, " "), "--"), version, refused, hint)
		}
	}
	return nil
}
