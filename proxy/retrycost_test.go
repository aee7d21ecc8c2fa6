package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// cutOff is a server whose only peer with gadgets cannot be reached.
type cutOff struct {
	*shell
	header   string // the value of Retry-After in a 503; "as it is": the handler's own value
	attempts atomic.Int64
}

// RoundTrip makes the handler the transport of client-go.
func (c *cutOff) RoundTrip(r *http.Request) (*http.Response, error) {
	c.attempts.Add(1)
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, in)
	answer := w.Result()
	answer.Request = r
	if w.Code == http.StatusServiceUnavailable && c.header != "as it is" {
		answer.Header.Del("Retry-After")
		if c.header != "" {
			answer.Header.Set("Retry-After", c.header)
		}
	}
	return answer, nil
}

func (c *cutOff) client(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "https://server.test", Transport: c, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(gadget.GroupVersion().WithResource("gadgets"))
}

// requests has single requests of a client of client-go. Every one of them fails.
var requests = []struct {
	name string
	send func(ctx context.Context, c dynamic.ResourceInterface) error
}{
	{"get", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.Get(ctx, "x", metav1.GetOptions{})
		return err
	}},
	{"list", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.List(ctx, metav1.ListOptions{})
		return err
	}},
	{"watch", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.Watch(ctx, metav1.ListOptions{})
		return err
	}},
	{"create", func(ctx context.Context, c dynamic.ResourceInterface) error {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "Gadget", "apiVersion": "new.k8s.io/v1", "metadata": map[string]any{"name": "x"}}}
		_, err := c.Create(ctx, object, metav1.CreateOptions{})
		return err
	}},
	{"delete", func(ctx context.Context, c dynamic.ResourceInterface) error {
		return c.Delete(ctx, "x", metav1.DeleteOptions{})
	}},
}

// The test measures what a Retry-After costs a client of client-go, if only an unreachable peer
// could serve its request: the attempts, and the time until the error.
func TestWhatRetryAfterCostsOneRequest(t *testing.T) {
	for _, request := range requests {
		for header, want := range map[string]string{
			"":         "1 attempt, 0s",
			"1":        "11 attempts, 10s",
			"as it is": "1 attempt, 0s",
		} {
			t.Run(request.name+", Retry-After "+header, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &cutOff{header: header, shell: newShell(t, Reference(), capablePeers(nil, "a"), dead)}
					began := time.Now()
					if err := request.send(t.Context(), c.client(t)); err == nil {
						t.Fatal("no error")
					}
					got := fmt.Sprintf("%d attempts, %s", c.attempts.Load(), time.Since(began))
					if strings.Replace(got, "1 attempts", "1 attempt", 1) != want && got != want {
						t.Errorf("%s; want %s", got, want)
					}
				})
			})
		}
	}
}
