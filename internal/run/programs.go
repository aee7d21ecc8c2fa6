package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	paths      map[binaries.Component]map[string]string // by version
	provenance []string
	identities []history.Binary
}

// needed are the versions of the programs that one or several runs need.
type needed map[binaries.Component][]string

// inOrder lists the programs in the order in which a run gets them.
var inOrder = []binaries.Component{
	binaries.KubeAPIServer, binaries.KubeAPIServerReference, binaries.KubeControllerManager, binaries.E2ETest, binaries.Etcd,
}

// neededServers returns the need of kube-apiservers for a subject. plain says whether some servers
// have a plain setup.
func neededServers(subject string, versions []string, plain bool) needed {
	if subject != scenario.SubjectReference {
		return needed{binaries.KubeAPIServer: versions}
	}
	n := needed{binaries.KubeAPIServerReference: versions}
	if plain {
		n[binaries.KubeAPIServer] = versions
	}
	return n
}

// of returns the programs of a cluster of the Spec.
func (p programs) of(s Spec) local.Programs {
	all := local.Programs{
		APIServers: p.paths[binaries.KubeAPIServer], Controllers: p.paths[binaries.KubeControllerManager], Tests: p.paths[binaries.E2ETest],
		Etcd: p.paths[binaries.Etcd][s.Etcd],
	}
	if s.Subject == scenario.SubjectReference {
		all.APIServers, all.Plain = p.paths[binaries.KubeAPIServerReference], all.APIServers
	}
	return all
}

// needs returns the programs that a run of the plan needs.
func (p *Plan) needs() needed {
	n := neededServers(p.Spec.Subject, p.Schedule.Versions(), p.Schedule.AnySetup((*scenario.Setup).IsPlain))
	n[binaries.KubeControllerManager], n[binaries.E2ETest] = p.Schedule.ControllerVersions(), p.Schedule.TestVersions()
	n[binaries.Etcd] = []string{p.Spec.Etcd}
	return n
}

// get gets the binaries of a run: from the user, the cache, a download or a build.
func (s Spec) get(ctx context.Context, n needed, progress io.Writer) (programs, error) {
	own, err := OverridesOf(s.Binaries)
	if err != nil {
		return programs{}, err
	}
	store := &binaries.Store{Overrides: own, Progress: progress, Next: n.refs()}
	got := programs{paths: map[binaries.Component]map[string]string{}}
	for _, c := range inOrder {
		got.paths[c] = map[string]string{}
		for _, v := range n[c] {
			path, identity, from, err := program(ctx, store, c, release.Of(v))
			if err != nil {
				return programs{}, err
			}
			got.paths[c][v] = path
			got.provenance = append(got.provenance, from)
			if !slices.Contains(got.identities, identity) { // two releases may be one binary with different flags
				got.identities = append(got.identities, identity)
			}
		}
	}
	return got, nil
}

// refs returns the binaries in the order in which get gets them, each once.
func (n needed) refs() (all []binaries.Ref) {
	for _, c := range inOrder {
		for _, v := range n[c] {
			ref := binaries.Ref{Component: c, Version: binaries.Version(release.Of(v))}
			if !slices.Contains(all, ref) { // two releases may be one binary with different flags
				all = append(all, ref)
			}
		}
	}
	return all
}

// add adds the needs of another run, each version once.
func (n needed) add(other needed) {
	for c, versions := range other {
		all := slices.Concat(n[c], versions)
		slices.Sort(all)
		n[c] = slices.Compact(all)
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
	n := needed{}
	all := Spec{Binaries: binaries.Overrides{}}
	for _, p := range plans {
		if p.Spec.Backend == scenario.BackendLocal {
			n.add(p.needs())
			maps.Copy(all.Binaries, p.Spec.Binaries)
		}
	}
	if len(n) == 0 {
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
				has = append(has, u.Name())
			}
			return fmt.Errorf("--binary %s=%s: no server of this run is that; it has %s", ref.Name(), path, strings.Join(has, ", "))
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
