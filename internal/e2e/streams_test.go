package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster/requestlog"
	"github.com/skewproof/skewproof/internal/workload"
)

// kubectl's streams cross the hop. The test asks a server whose kube-apiserver has pods switched
// off. So exec, attach, port-forward, logs and cp go from it to a peer, and then to a kubelet.
// Clients and kube-apiservers are real, and so are the kubelet's protocols.
func TestStreamsAcrossTheHop(t *testing.T) {
	if isInside() {
		streamsAcrossTheHop(t)
		return
	}
	needsTools(t, "nsenter", "tar")
	kept := begin(t, "The cluster stays up", "--keep", "--subject", "reference", "--servers", "2", "--qps", "20")
	kept.again(t, 6*time.Minute)
	kept.end(t, syscall.SIGINT)
	nothingIsLeft(t, kept.dir)
}

// streams has the values that all parts of the test use.
type streams struct {
	*noPods
	kubelet *kubelet
	client  *kubernetes.Clientset // to the server without pods
}

func streamsAcrossTheHop(t *testing.T) {
	admin, err := kubernetes.NewForConfig(insideConfig(t, "a"))
	must(t, err)
	k := startKubelet(t, gatewayOf(t, "a"))
	makePod(t, admin, k)
	s := &streams{noPods: startNoPods(t, newPair.from), kubelet: k}
	s.client, err = kubernetes.NewForConfig(s.config)
	must(t, err)

	for _, p := range streamProtocols { // idle connections that are kept, and files that are loaded once
		s.echo(t, p, []byte("first"))
	}
	idle := s.stayIdle(t)
	for _, p := range streamProtocols {
		t.Run(p.name, func(t *testing.T) {
			t.Run("exec carries bytes both ways", func(t *testing.T) { s.bytesBothWays(t, p) })
			t.Run("exec ends as the command does", func(t *testing.T) { s.exitCodes(t, p) })
			t.Run("exec answers after the end of its input", func(t *testing.T) { s.halfClosed(t, p) })
			t.Run("a terminal gets its sizes", func(t *testing.T) { s.sizes(t, p) })
			t.Run("attach", func(t *testing.T) { s.attached(t, p) })
			t.Run("cp", func(t *testing.T) { s.copied(t, p) })
			t.Run("port-forward", func(t *testing.T) { s.forwarded(t, p) })
			t.Run("refusals come from the server that serves pods", func(t *testing.T) { s.refused(t, p) })
			t.Run("many streams at once, some abandoned", func(t *testing.T) { s.many(t, p) })
		})
	}
	t.Run("logs -f", s.followed)
	t.Run("clients that vanish", s.vanished)
	t.Run("streams without traffic live on", idle)
	t.Run("everything crossed the hop", s.crossed)
}

// exec runs a command in the pod, across the hop.
func (s *streams) exec(ctx context.Context, p streamProtocol, streams stdio, command ...string) error {
	return p.execute(ctx, s.config, ofStreams(streamsPod), streams, command...)
}

// limited returns a context that ends with the test, or earlier if a stream hangs.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the stream has not ended within a minute"))
	t.Cleanup(cancel)
	return ctx
}

// refused checks that an error of the peer's kube-apiserver reaches the caller unchanged.
func (s *streams) refused(t *testing.T, p streamProtocol) {
	running := s.kubelet.running.Load()
	reader := rest.AnonymousClientConfig(s.config)
	reader.CertFile, reader.KeyFile = insideKeys("user-"+workload.Reader+".crt"), insideKeys("user-"+workload.Reader+".key")
	for what, c := range map[string]struct {
		config *rest.Config
		pod    string
		says   string
	}{
		"a pod that does not exist": {s.config, "skewproof-absent", `pods "skewproof-absent" not found`},
		"a user without the right":  {reader, streamsPod, `pods "` + streamsPod + `" is forbidden`},
	} {
		direct := rest.CopyConfig(c.config)
		direct.Host = insideConfig(t, "a").Host
		var answers [2]string
		for i, config := range []*rest.Config{direct, c.config} {
			answers[i] = fmt.Sprint(p.execute(limited(t), config, ofStreams(c.pod), stdio{Stdout: io.Discard}, "true"))
		}
		if answers[0] != answers[1] || !strings.Contains(answers[1], c.says) {
			t.Errorf("%s: %q across the hop, %q from a server that serves pods; want the same, with %q", what, answers[1], answers[0], c.says)
		}
	}
	if got := s.kubelet.running.Load(); got != running {
		t.Errorf("%d commands run in the pod, before %d", got, running)
	}
}

// crossed checks that a peer answered each request.
func (s *streams) crossed(t *testing.T) {
	counts := map[string]int{}
	for _, r := range s.records(t, "/pods/"+streamsPod+"/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		what := path[strings.LastIndexByte(path, '/')+1:]
		if r.ResponseStatus.Code == http.StatusForbidden {
			continue
		}
		counts[what]++
		if peer := r.Annotations[requestlog.PeerAnnotation]; peer == "" || r.ResponseStatus.Code != http.StatusSwitchingProtocols && what != "log" {
			t.Errorf("%s was answered %d by %q", r.RequestURI, r.ResponseStatus.Code, peer)
		}
	}
	for what, least := range map[string]int{"exec": 100, "attach": 2, "portforward": 2, "log": 1} {
		if counts[what] < least {
			t.Errorf("%d requests for %s crossed the hop, want at least %d", counts[what], what, least)
		}
	}
}
