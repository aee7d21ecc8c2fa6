package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
)

// server is one apiserver through all its incarnations. Kubelets bring static pods into line with their manifests, so a server is stopped by
// taking its manifests away, started by putting them there, and replaced by changing them in place.
type server struct {
	cluster *Cluster
	place   Place
	address netip.Addr // of the node; known once it runs

	serving atomic.Int64 // the incarnation that is ready, 0 if none is

	mu           sync.Mutex // held through each change of state, which may take long
	version      string
	manifests    map[string][]byte // by pod, as kubeadm and we made them
	incarnations []*incarnation
}

// pods are the static pods of a server, in the order in which they are started: each when the one before it is ready.
func (s *server) pods() []string {
	if s.cluster.config.Subject == local.SubjectReference {
		return []string{apiserverPod, proxyPod}
	}
	return []string{apiserverPod}
}

// begin records the start of the next incarnation.
func (s *server) begin() *incarnation {
	now := newIncarnation(len(s.incarnations)+1, s.version)
	s.incarnations = append(s.incarnations, now)
	s.record(history.StateStarting, "")
	return now
}

// adopt makes what kubeadm has started the server's first incarnation.
func (s *server) adopt(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.pods() {
		manifest, err := inNode(ctx, s.place.Node, "cat", manifestPath(pod))
		if err != nil {
			return fmt.Errorf("read the manifest of %s of server %q: %w", pod, s.place.Name, err)
		}
		s.manifests[pod] = manifest
	}
	return s.launch(ctx, s.last(), func(string) error { return nil })
}

func manifestPath(pod string) string { return manifestsDir + "/" + pod + ".yaml" }

// launch starts the pods of an incarnation one after the other by put, and takes it for ready.
func (s *server) launch(ctx context.Context, now *incarnation, put func(pod string) error) error {
	for _, pod := range s.pods() {
		err := put(pod)
		if err == nil {
			err = s.join(ctx, now, pod)
		}
		if err != nil {
			err = fmt.Errorf("server %q: %w", s.place.Name, err)
			if s.cluster.up.Load() && errors.Is(err, errEnded) { // a version that cannot start beside the others is a finding, not our failure
				s.crash(now)
			}
			return err
		}
	}
	s.record(history.StateReady, "")
	s.serving.Store(int64(now.number))
	s.cluster.tasks.Go(func() { s.watch(now) })
	s.cluster.config.Status("%s: %s is ready", s.place.Name, now.version)
	return nil
}

// join waits for a pod's process and until it is ready.
func (s *server) join(ctx context.Context, now *incarnation, pod string) error {
	pid, err := awaitProcess(ctx, s.place.Node, pod)
	if err != nil {
		return err
	}
	log := s.place.Name
	if pod == proxyPod {
		log += "-proxy"
	}
	p, err := follow(s.cluster.ctx, s.place.Node, pod, pid, s.cluster.config.Files.log(log))
	if err != nil {
		return err
	}
	now.add(p)
	if pod == proxyPod {
		return now.await(ctx, p, func(ctx context.Context) error { return s.get(ctx, s.door(), "/readyz", io.Discard) })
	}
	if err := now.await(ctx, p, func(ctx context.Context) error { return s.get(ctx, s.own(), "/readyz", io.Discard) }); err != nil {
		return err
	}
	return s.checkVersion(ctx, now.version)
}

// checkVersion asks a kube-apiserver for /version: an image that is not what it is called would make every verdict worthless.
func (s *server) checkVersion(ctx context.Context, want string) error {
	var body bytes.Buffer
	var info apimachineryversion.Info
	err := s.get(ctx, s.own(), "/version", &body)
	if err == nil {
		err = json.Unmarshal(body.Bytes(), &info)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ask for its version: %w", err)
	case info.GitVersion != want:
		return fmt.Errorf("it says that it is %s, and should be %s: make the node image anew ('make kind-images')", info.GitVersion, want)
	}
	return nil
}

func (s *server) get(ctx context.Context, at netip.AddrPort, path string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at.String()+path, nil)
	if err != nil {
		return err
	}
	response, err := s.cluster.probe.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(into, response.Body)
	if response.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("GET %s: %s", path, response.Status), err)
	}
	return err
}

// put writes the manifest of a pod for an incarnation.
func (s *server) put(ctx context.Context, now *incarnation, pod string) error {
	manifest, err := edit(s.manifests[pod], apiserverImage(now.version), now.number)
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

// expectEnd notes that the end of the present incarnation is asked for.
func (s *server) expectEnd() {
	s.serving.Store(0)
	s.last().asked.Store(true)
}

// last is the present incarnation, or the last one. There is one from the cluster's start on.
func (s *server) last() *incarnation { return s.incarnations[len(s.incarnations)-1] }

func (s *server) record(state history.State, detail string) {
	s.cluster.config.Recorder.Lifecycle(history.Lifecycle{
		Server: s.place.Name, Incarnation: s.last().number, Version: s.last().version,
		State: state, At: s.cluster.config.Recorder.Now(), Detail: detail,
	})
}

// Serving is the incarnation of a server that is ready at this moment, 0 if none is. It never waits.
func (c *Cluster) Serving(name string) int {
	s, err := c.server(name)
	if err != nil {
		return 0
	}
	return int(s.serving.Load())
}
