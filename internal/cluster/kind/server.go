package kind

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/scenario"
)

const (
	// startTimeout is how long a kubelet may take to start a pod after a change of its manifest.
	startTimeout = 2 * time.Minute
	// readyTimeout is generous: a loaded two-core machine takes a tenth of it.
	readyTimeout = 3 * time.Minute
	// stopTimeout exceeds the time for a kubelet to notice a change and to kill (after 30 s, by
	// default).
	stopTimeout = 90 * time.Second
	// effectTimeout bounds how long the harness reads the effect of a setup.
	effectTimeout = 5 * time.Second
)

// server is one apiserver through all its incarnations, and the node where it lives. Kubelets bring
// static pods into line with their manifests: a server is stopped by removing its manifests,
// started by writing them, and replaced by changing them in place.
type server struct {
	lifecycle.Server[*process]
	cluster   *Cluster
	place     Place
	address   netip.Addr        // of the node; known once it runs
	manifests map[string][]byte // by pod, as kubeadm and we made them
}

type incarnation = lifecycle.Incarnation[*process]

func (c *Cluster) newServer(p Place, version string) *server {
	s := &server{cluster: c, place: p, manifests: map[string][]byte{}}
	s.Config, s.Name, s.Version, s.Backend = &c.lifecycle, p.Name, version, s
	return s
}

func (s *server) subject() string { return lifecycle.Subject(s.cluster.config.Subject, s.Setup()) }

// real is the address that clients and peers dial: that of the sidecar if there is one, otherwise
// that of the kube-apiserver.
func (s *server) real() netip.AddrPort { return netip.AddrPortFrom(s.address, securePort) }

// own is where the kube-apiserver itself listens at present.
func (s *server) own() netip.AddrPort {
	if s.subject() == scenario.SubjectReference {
		return netip.AddrPortFrom(s.address, behindPort)
	}
	return s.real()
}

// pods are the static pods of a server, in the order in which they are started.
func (s *server) pods() []string {
	if s.subject() == scenario.SubjectReference {
		return []string{apiserverPod, proxyPod}
	}
	return []string{apiserverPod}
}

// Programs implements [lifecycle.Backend].
func (s *server) Programs(string) ([]lifecycle.Program[*process], error) {
	var programs []lifecycle.Program[*process]
	for _, pod := range s.pods() {
		args, err := s.arguments(pod)
		if err != nil {
			return nil, err
		}
		program := lifecycle.Program[*process]{
			Args:  args,
			Start: func(ctx context.Context, i *incarnation) (*process, error) { return s.startPod(ctx, pod, i) },
			URL:   "https://" + s.real().String(),
		}
		if pod == apiserverPod {
			program.URL, program.Check = "https://"+s.own().String(), s.checkVersion
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// arguments returns the arguments of the program in a pod of the next incarnation. It returns nil
// while the pod's manifest is unknown.
func (s *server) arguments(pod string) ([]string, error) {
	if len(s.manifests[pod]) == 0 {
		return nil, nil
	}
	own, err := ownArguments(s.cluster.oldest, s.cluster.config.Subject, s.Setup(), s.cluster.config.Own)
	if err != nil {
		return nil, err
	}
	return commandLine(s.manifests[pod], func(c *corev1.Container) {
		if pod == apiserverPod {
			setUp(c, own)
		}
	})
}

// startPod writes the manifest of a pod, if nothing else starts it, and awaits the process.
func (s *server) startPod(ctx context.Context, pod string, i *incarnation) (*process, error) {
	if !i.Adopted {
		if err := s.writeManifest(ctx, pod, i.Version, i.Number); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprintf("%s %q (%s)", pod, s.Name, i.Version)
	pid, err := awaitProcess(ctx, s.place.Node, pod)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	log := s.Name
	if pod == proxyPod {
		log += "-proxy"
	}
	return follow(s.cluster.ctx, s.place.Node, pod, name, pid, s.cluster.config.Files.log(log))
}

// checkVersion refuses an image of another version than its name says.
func (s *server) checkVersion(ctx context.Context, i *incarnation) error {
	version, reports, err := lifecycle.VersionAt(ctx, s.Client, "https://"+s.own().String())
	i.Reports = reports
	if err == nil && version != i.Version {
		err = fmt.Errorf("its version is %s, want %s: build the node image again ('make kind-images')", version, i.Version)
	}
	return err
}

// adopt makes the static pods that kubeadm has started the server's first incarnation.
func (s *server) adopt(ctx context.Context) error {
	manifest, err := inNode(ctx, s.place.Node, "cat", manifestPath(apiserverPod))
	if err != nil {
		return fmt.Errorf("read the manifest of %s of server %q: %w", apiserverPod, s.Name, err)
	}
	s.manifests[apiserverPod] = []byte(manifest)
	if s.manifests[proxyPod], err = ProxyManifest(s.Version); err != nil {
		return err
	}
	return s.Adopt(ctx)
}

// Terminate implements [lifecycle.Backend]. For a replacement, the manifest of the kube-apiserver
// is changed in place, as kubeadm does in an upgrade.
func (s *server) Terminate(ctx context.Context, p *process, next string) error {
	if next != "" && p.pod == apiserverPod {
		return s.writeManifest(ctx, p.pod, next, s.Last().Number+1)
	}
	return s.removeManifests(ctx, "", p.pod)
}

// KillProcesses implements [lifecycle.Backend]. Without manifests no kubelet restarts pods.
func (s *server) KillProcesses(ctx context.Context, living []*process) error {
	return s.removeManifests(ctx, "kill -KILL "+strings.Join(pids(living), " ")+"\n", s.pods()...)
}

// Signal implements [lifecycle.Backend]: it reaches the server's processes, and not its node. The
// kubelet tolerates a paused server for 80 s, the limit of kubeadm's liveness probe (8 times 10 s).
func (s *server) Signal(ctx context.Context, living []*process, signal syscall.Signal) error {
	_, err := inNode(ctx, s.place.Node, append([]string{"kill", "-" + strings.TrimPrefix(unix.SignalName(signal), "SIG")}, pids(living)...)...)
	return err
}

func manifestPath(pod string) string { return manifestsDir + "/" + pod + ".yaml" }

func (s *server) writeManifest(ctx context.Context, pod, version string, incarnation int) error {
	var change func(*corev1.Container)
	if pod == apiserverPod {
		own, err := ownArguments(s.cluster.oldest, s.cluster.config.Subject, s.Setup(), s.cluster.config.Own)
		if err != nil {
			return err
		}
		change = func(c *corev1.Container) { setUp(c, own) }
	}
	manifest, err := edit(s.manifests[pod], apiserverImage(version), incarnation, change)
	if err != nil {
		return err
	}
	return write(ctx, s.place.Node, manifestPath(pod), manifest)
}

// removeManifests moves the manifests of pods to where the kubelet does not look. It runs the lines
// before that.
func (s *server) removeManifests(ctx context.Context, before string, pods ...string) error {
	lines := "mkdir -p /etc/kubernetes/skewproof\n" + before
	for _, pod := range pods {
		lines += "mv -f " + manifestPath(pod) + " /etc/kubernetes/skewproof/\n"
	}
	_, err := script(ctx, s.place.Node, lines)
	return err
}
