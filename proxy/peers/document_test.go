package peers

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// The sources fetch a document as a kube-apiserver. The request is marked as a hop, so that the
// peer itself answers it.
func TestDocument(t *testing.T) {
	const path = "/openapi/v3/apis/batch/v1"
	s := newServer(t, "v1.37.1")
	client, address := serveTLS(t, s)
	store := proxy.NewStore(proxy.Reference(), "self")
	metrics := NewMetrics(store)
	sources, err := New(Config{Store: store, PeerTransport: client.Transport, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	peer := proxy.PeerView{ID: "a", Address: address.Host}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		fails  string
	}{
		"good": {answer: func(w http.ResponseWriter, r *http.Request) {
			for header, want := range map[string]string{"X-Remote-User": "system:apiserver", proxy.HopHeader: "true", "Accept": "application/json", "Authorization": ""} {
				if got := r.Header.Get(header); got != want {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
			w.Header().Set("ETag", `"7"`)
			io.WriteString(w, "{}")
		}, want: "{}"},
		"refused": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, fails: "it answered 403"},
		"moved": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://192.0.2.1/", http.StatusMovedPermanently)
		}, fails: "redirects are not followed"},
		"broken off": {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fails: "it"},
	} {
		t.Run(name, func(t *testing.T) {
			s.mu.Lock()
			s.failing[path] = c.answer
			s.mu.Unlock()
			before := testutil.ToFloat64(metrics.errors.WithLabelValues(failedFetch))
			body, etag, err := sources.Document(t.Context(), peer, path)
			failed := testutil.ToFloat64(metrics.errors.WithLabelValues(failedFetch)) - before
			if c.fails == "" && (err != nil || string(body) != c.want || etag != `"7"` || failed != 0) {
				t.Errorf("%q, %q, %v; %v counted as failed", body, etag, err, failed)
			}
			if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || failed != 1) {
				t.Errorf("error %v, %v counted as failed; want %q, 1", err, failed, c.fails)
			}
			if err != nil && strings.Contains(err.Error(), address.Host) {
				t.Errorf("the error names the address: %v", err)
			}
		})
	}
}

// The clock is that of synctest, because on a busy machine so long a document does not come in the
// time that a peer has.
func TestADocumentIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := proxy.NewStore(proxy.Reference(), "self")
		metrics := NewMetrics(store)
		tooLong := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat(" ", discovery.MaxOpenAPI+1))
		})
		sources, err := New(Config{Store: store, PeerTransport: &network{servers: map[string]http.Handler{addressA: tooLong}}, Metrics: metrics})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = sources.Document(t.Context(), proxy.PeerView{ID: "a", Address: addressA}, "/openapi/v3/apis/batch/v1")
		failed := testutil.ToFloat64(metrics.errors.WithLabelValues(failedFetch))
		if err == nil || !strings.Contains(err.Error(), "it is longer than") || failed != 1 {
			t.Errorf("error %v, %v counted as failed; want that it is too long, 1", err, failed)
		}
	})
}
