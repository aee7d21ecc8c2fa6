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
// static pods into line with their manifests: a server is stopped by removing its manifest, started
// by writing it, and replaced by changing it in place.
type server struct {
	lifecycle.Server[*process]
	cluster  *Cluster
	place    Place
	address  netip.Addr // of the node; known once it runs
	manifest []byte     // of the static pod, as kubeadm made it
}

type incarnation = lifecycle.Incarnation[*process]

func (c *Cluster) newServer(p Place, version string) *server {
	s := &server{cluster: c, place: p}
	s.Config, s.Name, s.Version, s.Backend = &c.lifecycle, p.Name, version, s
	return s
}

// real is the address of the kube-apiserver, which clients and peers dial.
func (s *server) real() netip.AddrPort { return netip.AddrPortFrom(s.address, securePort) }

func (s *server) url() string { return "https://" + s.real().String() }

// Program implements [lifecycle.Backend].
func (s *server) Program(string) (lifecycle.Program[*process], error) {
	args, err := s.arguments()
	return lifecycle.Program[*process]{Args: args, Start: s.startPod, URL: s.url(), Check: s.checkVersion}, err
}

// arguments returns the arguments of the next incarnation. It returns nil while the pod's manifest
// is unknown.
func (s *server) arguments() ([]string, error) {
	if len(s.manifest) == 0 {
		return nil, nil
	}
	own, err := ownArguments(s.cluster.oldest, s.cluster.config.Subject, s.Setup(), s.cluster.config.Own)
	if err != nil {
		return nil, err
	}
	return commandLine(s.manifest, func(c *corev1.Container) { setUp(c, own) })
}

// startPod writes the manifest of the pod, if nothing else starts it, and awaits the process.
func (s *server) startPod(ctx context.Context, i *incarnation) (*process, error) {
	if !i.Adopted {
		if err := s.writeManifest(ctx, i.Version, i.Number); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprintf("%s %q (%s)", apiserverPod, s.Name, i.Version)
	pid, err := awaitProcess(ctx, s.place.Node)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return follow(s.cluster.ctx, s.place.Node, name, pid, s.cluster.config.Files.log(s.Name))
}

// checkVersion refuses an image of another version than its name says.
func (s *server) checkVersion(ctx context.Context, i *incarnation) error {
	version, reports, err := lifecycle.VersionAt(ctx, s.Client, s.url())
	i.Reports = reports
	if err == nil && version != i.Version {
		err = fmt.Errorf("its version is %s, want %s: build the node image again ('make kind-images')", version, i.Version)
	}
	return err
}

// adopt makes the static pod that kubeadm has started the server's first incarnation.
func (s *server) adopt(ctx context.Context) error {
	manifest, err := inNode(ctx, s.place.Node, "cat", manifestPath)
	if err != nil {
		return fmt.Errorf("read the manifest of %s of server %q: %w", apiserverPod, s.Name, err)
	}
	s.manifest = []byte(manifest)
	return s.Adopt(ctx)
}

// Terminate implements [lifecycle.Backend]. For a replacement, the manifest of the kube-apiserver
// is changed in place, as kubeadm does in an upgrade.
func (s *server) Terminate(ctx context.Context, _ *process, next string) error {
	if next != "" {
		return s.writeManifest(ctx, next, s.Last().Number+1)
	}
	return s.removeManifest(ctx, "")
}

// KillProcess implements [lifecycle.Backend]. Without a manifest no kubelet restarts the pod.
func (s *server) KillProcess(ctx context.Context, p *process) error {
	return s.removeManifest(ctx, "kill -KILL "+p.pid+"\n")
}

// Signal implements [lifecycle.Backend]: it reaches the server's process, and not its node. The
// kubelet tolerates a paused server for 80 s, the limit of kubeadm's liveness probe (8 times 10 s).
func (s *server) Signal(ctx context.Context, p *process, signal syscall.Signal) error {
	_, err := inNode(ctx, s.place.Node, "kill", "-"+strings.TrimPrefix(unix.SignalName(signal), "SIG"), p.pid)
	return err
}

const manifestPath = manifestsDir + "/" + apiserverPod + ".yaml"

func (s *server) writeManifest(ctx context.Context, version string, incarnation int) error {
	own, err := ownArguments(s.cluster.oldest, s.cluster.config.Subject, s.Setup(), s.cluster.config.Own)
	if err != nil {
		return err
	}
	image := apiserverImage(s.cluster.config.Subject, version)
	manifest, err := edit(s.manifest, image, incarnation, func(c *corev1.Container) { setUp(c, own) })
	if err != nil {
		return err
	}
	return write(ctx, s.place.Node, manifestPath, manifest)
}

// removeManifest moves the manifest of the pod to where the kubelet does not look. It runs the
// lines before that.
func (s *server) removeManifest(ctx context.Context, before string) error {
	_, err := script(ctx, s.place.Node, "mkdir -p /etc/kubernetes/skewproof\n"+before+"mv -f "+manifestPath+" /etc/kubernetes/skewproof/\n")
	return err
}
