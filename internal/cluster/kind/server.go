package kind

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

const (
	// startTimeout is how long a kubelet may take to start a pod whose manifest has come, or changed.
	startTimeout = 2 * time.Minute
	// readyTimeout is generous: a loaded two-core machine takes a tenth of it.
	readyTimeout = 3 * time.Minute
	// stopTimeout exceeds the time after which a kubelet kills (30 s, the default of static pods) and what it takes to notice a change.
	stopTimeout = 90 * time.Second
	// seeing bounds how long the harness looks at what a configuration does.
	seeing = 5 * time.Second
)

// server is one apiserver through all its incarnations, and the node where it lives. Kubelets bring static pods into line with their manifests, so a
// server is stopped by taking its manifests away, started by putting them there, and replaced by changing them in place.
type server struct {
	life.Server[*process]
	cluster   *Cluster
	place     Place
	address   netip.Addr                     // of the node; known once it runs
	manifests map[string][]byte              // by pod, as kubeadm and we made them
	setup     atomic.Pointer[scenario.Setup] // of the present process, or the last one; nil: as the subject says
	next      *scenario.Setup                // of the next start
}

func (c *Cluster) newServer(p Place, version string) *server {
	s := &server{cluster: c, place: p, manifests: map[string][]byte{}}
	s.Name, s.Version, s.Recorder, s.Status = p.Name, version, c.config.Recorder, c.config.Status
	return s
}

// pods are the static pods of a server, in the order in which they are started: each when the one before it is ready.
func (s *server) pods() []string {
	if s.subject() == scenario.SubjectReference {
		return []string{apiserverPod, proxyPod}
	}
	return []string{apiserverPod}
}

// adopt makes what kubeadm has started the server's first incarnation.
func (s *server) adopt(ctx context.Context) error {
	s.Lock()
	defer s.Unlock()
	manifest, err := inNode(ctx, s.place.Node, "cat", manifestPath(apiserverPod))
	if err != nil {
		return fmt.Errorf("read the manifest of %s of server %q: %w", apiserverPod, s.place.Name, err)
	}
	s.manifests[apiserverPod] = manifest
	if s.manifests[proxyPod], err = ProxyManifest(s.Version); err != nil {
		return err
	}
	return s.launch(ctx, s.Begin(), func(string) error { return nil })
}

func manifestPath(pod string) string { return manifestsDir + "/" + pod + ".yaml" }

// launch starts the pods of an incarnation one after the other by put, and takes it for ready.
func (s *server) launch(ctx context.Context, now *incarnation, put func(pod string) error) error {
	now.Emulates = s.setup.Load().Like()
	for _, pod := range s.pods() {
		err := put(pod)
		if err == nil {
			err = s.join(ctx, now, pod)
		}
		if err != nil {
			if s.cluster.up.Load() && len(now.Processes()) > 0 && now.Ended() { // a version that cannot start beside the others is a finding, not our failure
				s.Crash(now, now.First())
			}
			return err
		}
	}
	s.Ready(now)
	s.cluster.tasks.Go(func() { s.watch(now) })
	return nil
}

// join waits for a pod's process and until it is ready. The incarnation starts with the first of them: a kubelet may take half a minute to get so far, and
// nothing runs until then.
func (s *server) join(ctx context.Context, now *incarnation, pod string) error {
	name := fmt.Sprintf("%s %q (%s)", pod, s.place.Name, now.Version)
	pid, err := awaitProcess(ctx, s.place.Node, pod)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	log := s.place.Name
	if pod == proxyPod {
		log += "-proxy"
	}
	p, err := follow(s.cluster.ctx, s.place.Node, pod, name, pid, s.cluster.config.Files.log(log))
	if err != nil {
		return err
	}
	if len(now.Processes()) == 0 {
		s.Record(history.StateStarting, "")
	}
	now.Add(p)
	at := s.own()
	if pod == proxyPod {
		at = s.door()
	}
	err = now.Await(ctx, p, readyTimeout, func(ctx context.Context) error {
		return life.Get(ctx, s.cluster.probe, "https://"+at.String()+"/readyz", io.Discard)
	})
	if err != nil || pod == proxyPod {
		return err
	}
	if err := s.checkVersion(ctx, now.Version); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

// checkVersion refuses an image that is not what it is called.
func (s *server) checkVersion(ctx context.Context, want string) error {
	version, err := life.VersionAt(ctx, s.cluster.probe, "https://"+s.own().String(), s.setup.Load().Like())
	if err == nil && version != want {
		err = fmt.Errorf("it says that it is %s, and should be %s: make the node image anew ('make kind-images')", version, want)
	}
	return err
}

// put writes the manifest of a pod for the incarnation of that number.
func (s *server) put(ctx context.Context, pod, version string, incarnation int) error {
	var change func(*corev1.Container)
	if pod == apiserverPod {
		own, err := ownArguments(s.cluster.oldest, s.cluster.config.Subject, s.setup.Load())
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

// takeAway moves the manifests of pods out of the kubelet's sight, after the lines have been carried out, in one go.
func (s *server) takeAway(ctx context.Context, before string, pods ...string) error {
	lines := "mkdir -p /etc/kubernetes/skewproof\n" + before
	for _, pod := range pods {
		lines += "mv -f " + manifestPath(pod) + " /etc/kubernetes/skewproof/\n"
	}
	_, err := script(ctx, s.place.Node, lines)
	return err
}

// Serving is the incarnation of a server that is ready at this moment, 0 if none is. It never waits.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return s.Serving()
}
