package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
)

const upstreamMetrics = `# HELP apiserver_rerouted_request_total [ALPHA] Total number of requests that were proxied to a peer kube-apiserver.
# TYPE apiserver_rerouted_request_total counter
apiserver_rerouted_request_total{code="200",group="",resource="",version=""} 4
apiserver_rerouted_request_total{code="200",group="certificates.k8s.io",resource="podcertificaterequests",version="v1"} 1.2e+01
apiserver_rerouted_request_total{code="0",group="certificates.k8s.io",resource="podcertificaterequests",version="v1"} 1
# TYPE apiserver_request_total counter
apiserver_request_total{code="200"} 7
`

func TestWhatServersHaveCountedIsReadFromTheirMetrics(t *testing.T) {
	requests := history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"}
	of := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, text)
		}
	}
	for name, c := range map[string]struct {
		metrics http.HandlerFunc
		want    []history.Rerouted
		wrong   string // part of the error
	}{
		"a kube-apiserver": {of(200, upstreamMetrics),
			[]history.Rerouted{{Code: "200", Count: 4}, {Code: "200", GVR: requests, Count: 12}, {Code: "0", GVR: requests, Count: 1}}, ""},
		"a kube-apiserver of 1.35": {of(200, "# TYPE apiserver_rerouted_request_total counter\napiserver_rerouted_request_total{code=\"200\"} 64\n"),
			[]history.Rerouted{{Code: "200", Together: true, Count: 64}}, ""},
		"nothing counted":       {of(200, "# TYPE a counter\na 1\n"), nil, ""},
		"a server that refuses": {of(403, ""), nil, "GET /metrics: status 403"},
		"no metrics":            {of(200, "{}"), nil, "parse its metrics"},
		"cut short":             {of(200, upstreamMetrics[:len(upstreamMetrics)/2]), nil, "parse its metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := http.NewServeMux()
			paths.HandleFunc("/metrics", c.metrics)
			at := httptest.NewServer(paths)
			defer at.Close()
			server, err := asking(&one{at: at}, "a")
			if err != nil {
				t.Fatal(err)
			}
			got, err := readRerouted(t.Context(), server)
			if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, c.want, c.wrong)
			}
		})
	}
}

// counting is a cluster of ready servers with the same metrics, one of which is replaced while its
// metrics are read.
type counting struct {
	cluster.Reachable
	url      string
	serving  map[string]int
	replaced string       // the server that is replaced
	times    atomic.Int32 // how often it was replaced
}

func (c *counting) Serving(name string) int {
	if name == c.replaced {
		return c.serving[name] + int(c.times.Load())
	}
	return c.serving[name]
}

func (c *counting) Direct(name string) (*rest.Config, error) {
	config := &rest.Config{Host: c.url}
	if name == c.replaced {
		config.Wrap(func(to http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				c.times.Add(1)
				return to.RoundTrip(r)
			})
		})
	}
	return config, nil
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestCountsAreThoseOfOneProcess(t *testing.T) {
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = fmt.Fprint(w, upstreamMetrics)
			return
		}
		http.NotFound(w, r)
	}))
	defer at.Close()
	c := &counting{url: at.URL, serving: map[string]int{"a": 3, "b": 0, "c": 1}, replaced: "c"}
	truth, read := newTruthOf(t, c, func() history.Time { return 7 }, "a", "b", "c")
	l := &load{truth: truth, cluster: c, recorder: truth.recorder, servers: []string{"a", "b", "c"}, status: t.Logf}
	l.count(context.Background())
	h := read()
	if len(h.Counted) != 1 || h.Counted[0].Server != "a" || h.Counted[0].Incarnation != 3 || h.Counted[0].At != 7 || len(h.Counted[0].Rerouted) != 3 {
		t.Errorf("it is recorded that %+v", h.Counted)
	}
}
