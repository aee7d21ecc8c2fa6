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
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// checkOwn refuses flags of the user's own that would break this plan. given returns the flags that
// the run gives the i-th server at a start.
func (p *Plan) checkOwn(given func(i int, s scenario.Server) ([]string, error)) error {
	if len(p.Spec.own().Words()) == 0 {
		return nil
	}
	own, err := OverridesOf(p.Spec.Binaries)
	if err != nil {
		return err
	}
	var all []local.Start
	seen := map[string]bool{} // servers that are started in the same way differ in addresses only
	for i, server := range p.Schedule.Servers {
		for _, s := range starts(p.Schedule, server) {
			how := s.Version + " " + s.Setup.String()
			if seen[how] {
				continue
			}
			seen[how] = true
			args, err := given(i, s)
			if err != nil {
				return err
			}
			_, isOwn := own[p.Spec.server(s.Version)]
			all = append(all, local.Start{Server: s.Name, Version: s.Version, Setup: s.Setup, Own: isOwn && p.Spec.Backend == scenario.BackendLocal, Args: args})
		}
	}
	p.notes, err = local.CheckOwn(p.Spec.own(), all)
	return err
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

// askOwn prints what is not known about the user's own flags, and asks the user's own
// kube-apiservers whether they take them. The error has the words of the first that refuses.
func (p *Plan) askOwn(ctx context.Context, out io.Writer) error {
	for _, note := range p.notes {
		fmt.Fprintf(out, "%s\n\n", note)
	}
	programs, err := OverridesOf(p.Spec.Binaries)
	if err != nil {
		return err
	}
	own := p.Spec.own()
	for _, version := range p.Schedule.Versions() {
		path, ok := programs[p.Spec.server(version)]
		if !ok || len(own.Flags) == 0 {
			continue
		}
		refused := binaries.Takes(ctx, path, history.OwnFlags{Flags: own.Flags}.Words()...)
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
		return Usagef("--kube-apiserver-flag %s: kube-apiserver %s refuses it: %w%s", strings.Join(own.Flags, " "), version, refused, local.Meant(own, has))
	}
	return nil
}

// server names the kube-apiserver of a version of a plan.
func (s Spec) server(version string) binaries.Ref {
	return binaries.Ref{Component: binaries.Component(local.Program(s.Subject, nil)), Version: binaries.Version(release.Of(version))}
}
