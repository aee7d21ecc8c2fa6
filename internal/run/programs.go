package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// programs are the binaries of a run on the backend local, with their origin.
type programs struct {
	apiservers  map[string]string // version → path
	references  map[string]string // version of kube-apiserver-reference → path
	controllers map[string]string // version of kube-controller-manager → path
	tests       map[string]string // version of e2e.test → path
	etcd        string
	provenance  []string
	identities  []history.Binary
}

// needed are the versions of programs that one or several runs need.
type needed struct {
	apiservers, references, controllers, tests []string
	etcd                                       string
}

// neededServers returns the need of kube-apiservers for a subject. plain says whether some servers
// have a plain setup.
func neededServers(subject string, versions []string, plain bool) (n needed) {
	if subject == scenario.SubjectReference {
		n.references = versions
		if !plain {
			return n
		}
	}
	n.apiservers = versions
	return n
}

// servers returns the kube-apiservers of a subject, and those of servers with a plain setup.
func (p programs) servers(subject string) (servers, plain map[string]string) {
	if subject == scenario.SubjectReference {
		return p.references, p.apiservers
	}
	return p.apiservers, nil
}

// needs returns the programs that a run of the plan needs.
func (p *Plan) needs() needed {
	n := neededServers(p.Spec.Subject, p.Schedule.Versions(), p.Schedule.AnySetup((*scenario.Setup).IsPlain))
	n.controllers, n.tests, n.etcd = p.Schedule.ControllerVersions(), p.Schedule.TestVersions(), p.Spec.Etcd
	return n
}

// get gets the binaries of a run: from the user, the cache, a download or a build.
func (s Spec) get(ctx context.Context, n needed, progress io.Writer) (programs, error) {
	own, err := OverridesOf(s.Binaries)
	if err != nil {
		return programs{}, err
	}
	store := &binaries.Store{Overrides: own, Progress: progress, Next: n.refs()}
	got := programs{apiservers: map[string]string{}, references: map[string]string{}, controllers: map[string]string{}, tests: map[string]string{}}
	get := func(c binaries.Component, version string) (string, error) {
		path, identity, from, err := program(ctx, store, c, version)
		if err != nil {
			return "", err
		}
		got.provenance = append(got.provenance, from)
		if !slices.Contains(got.identities, identity) { // two releases may be one binary with different flags
			got.identities = append(got.identities, identity)
		}
		return path, nil
	}
	for _, of := range []struct {
		component binaries.Component
		versions  []string
		paths     map[string]string
	}{
		{binaries.KubeAPIServer, n.apiservers, got.apiservers}, {binaries.KubeAPIServerReference, n.references, got.references},
		{binaries.KubeControllerManager, n.controllers, got.controllers}, {binaries.E2ETest, n.tests, got.tests},
	} {
		for _, v := range of.versions {
			if of.paths[v], err = get(of.component, release.Of(v)); err != nil {
				return programs{}, err
			}
		}
	}
	got.etcd, err = get(binaries.Etcd, n.etcd)
	return got, err
}

// refs returns the binaries in the order in which get gets them, each once.
func (n needed) refs() (all []binaries.Ref) {
	add := func(c binaries.Component, versions ...string) {
		for _, v := range versions {
			ref := binaries.Ref{Component: c, Version: binaries.Version(release.Of(v))}
			if !slices.Contains(all, ref) { // two releases may be one binary with different flags
				all = append(all, ref)
			}
		}
	}
	add(binaries.KubeAPIServer, n.apiservers...)
	add(binaries.KubeAPIServerReference, n.references...)
	add(binaries.KubeControllerManager, n.controllers...)
	add(binaries.E2ETest, n.tests...)
	add(binaries.Etcd, n.etcd)
	return all
}

// and adds the needs of another run, each version once. It takes the version of etcd from other.
func (n needed) and(other needed) needed {
	both := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return needed{
		both(n.apiservers, other.apiservers), both(n.references, other.references), both(n.controllers, other.controllers),
		both(n.tests, other.tests), other.etcd,
	}
}

// program gets one binary, and returns its identity and its origin.
func program(ctx context.Context, store *binaries.Store, c binaries.Component, version string) (path string, identity history.Binary, from string, err error) {
	b, err := store.Get(ctx, c, version)
	if err != nil {
		return "", history.Binary{}, "", BinaryError(err)
	}
	says, err := binaries.Says(ctx, b)
	if err != nil {
		return "", history.Binary{}, "", err
	}
	identity = history.Binary{Component: string(c), Version: version, Says: says, SHA256: b.SHA256, Own: b.Origin == binaries.OriginPath}
	how := b.How
	if identity.Own {
		how = "a binary of the user's own"
	}
	return b.Path, identity, fmt.Sprintf("%s %s: %s, sha256:%s", c, version, how, b.SHA256), nil
}

// FetchClients gets clients, such as kubectl. It returns their paths and identities. own are the
// user's own binaries; the environment may name more.
func FetchClients(ctx context.Context, own binaries.Overrides, clients []binaries.Ref, progress io.Writer) (
	paths map[binaries.Ref]string, identities []history.Binary, err error,
) {
	if own, err = OverridesOf(own); err != nil {
		return nil, nil, err
	}
	store := &binaries.Store{Overrides: own, Progress: progress}
	paths = map[binaries.Ref]string{}
	for _, c := range clients {
		path, identity, _, err := program(ctx, store, c.Component, string(c.Version))
		if err != nil {
			return nil, nil, err
		}
		paths[c] = path
		identities = append(identities, identity)
	}
	return paths, identities, nil
}

// Fetch gets the binaries that runs on the backend local need, so that none of these runs has to
// wait for them. It returns their identities.
func Fetch(ctx context.Context, plans []*Plan, progress io.Writer) ([]history.Binary, error) {
	var n needed
	all := Spec{Binaries: binaries.Overrides{}}
	for _, p := range plans {
		if p.Spec.Backend == scenario.BackendLocal {
			n = n.and(p.needs())
			maps.Copy(all.Binaries, p.Spec.Binaries)
		}
	}
	if len(n.apiservers)+len(n.references) == 0 {
		return nil, nil
	}
	got, err := all.get(ctx, n, progress)
	return got.identities, err
}

// BinaryError adds the kind to an error of [binaries.Store.Get].
func BinaryError(err error) error {
	if errors.Is(err, binaries.ErrBadVersion) || errors.Is(err, binaries.ErrBadRef) {
		return wrong(err)
	}
	return err
}

// OverridesOf adds the binaries that the environment names to the user's own. A flag overrides the
// environment, because the user set it for this command.
func OverridesOf(own binaries.Overrides) (binaries.Overrides, error) {
	all, err := binaries.OverridesFromEnv(os.Getenv(binaries.OverrideEnv))
	if err != nil {
		return nil, Usagef("%s: %w", binaries.OverrideEnv, err)
	}
	maps.Copy(all, own)
	return all, nil
}

// Used returns the binaries that a run on the backend local uses.
func (s Spec) Used() (all []binaries.Ref) {
	server := binaries.Component(local.Program(s.Subject, nil))
	for _, b := range []struct {
		component binaries.Component
		version   string
	}{
		{server, release.Of(cmp.Or(s.From, DefaultFrom))}, {server, release.Of(cmp.Or(s.To, DefaultTo))},
		{binaries.Etcd, cmp.Or(s.Etcd, binaries.DefaultEtcd)},
	} {
		if ref, err := binaries.NewRef(b.component, b.version); err == nil && !slices.Contains(all, ref) {
			all = append(all, ref)
		}
	}
	return all
}

// checkBinaries refuses a binary that no server of the run would use, because a user who gives a
// binary wants to test it.
func (s Spec) checkBinaries() error {
	used := s.Used()
	for ref, path := range s.Binaries {
		if !slices.Contains(used, ref) {
			var has []string
			for _, u := range used {
				has = append(has, named(u))
			}
			return fmt.Errorf("--binary %s=%s: no server of this run is that; it has %s", named(ref), path, strings.Join(has, ", "))
		}
	}
	for _, ref := range used {
		if err := s.Binaries.Check(ref); err != nil {
			return fmt.Errorf("--binary: %w", err)
		}
	}
	return nil
}

// takeEnvironment adds the binaries that the environment names and the run uses. So the command
// line that repeats the run names them.
func (s *Spec) takeEnvironment() error {
	all, err := OverridesOf(s.Binaries)
	if err != nil {
		return err
	}
	used := s.Used()
	maps.DeleteFunc(all, func(ref binaries.Ref, _ string) bool { return !slices.Contains(used, ref) })
	s.Binaries = all
	return nil
}

// named writes a binary as --binary does.
func named(ref binaries.Ref) string { return string(ref.Component) + "@" + string(ref.Version) }

func refs(o binaries.Overrides) iter.Seq[binaries.Ref] { return maps.Keys(o) }

func compareRefs(a, b binaries.Ref) int { return cmp.Compare(named(a), named(b)) }
