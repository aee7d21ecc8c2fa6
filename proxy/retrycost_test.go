package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// cutOff is a server whose only peer with gadgets cannot be reached until a given time.
type cutOff struct {
	*shell
	header string // the value of Retry-After in a 503; "as it is": the handler's own value
	until  time.Time

	mu       sync.Mutex
	attempts int
}

func newCutOff(t *testing.T, header string, outage time.Duration) *cutOff {
	c := &cutOff{header: header, until: time.Now().Add(outage)}
	c.shell = newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		if time.Now().Before(c.until) {
			return nil, refusesConnection()
		}
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done() // a watch without events
			return nil, r.Context().Err()
		}
		return says(200, `{"kind":"GadgetList","apiVersion":"new.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`, "Content-Type", "application/json"), nil
	}))
	return c
}

// RoundTrip makes the handler the transport of client-go.
func (c *cutOff) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	c.mu.Lock()
	c.attempts++
	c.mu.Unlock()
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			answer, err = nil, r.Context().Err() // the client has closed its connection
		} else if p != nil {
			panic(p)
		}
	}()
	c.ServeHTTP(w, in)
	answer = w.Result()
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

// The test measures what a Retry-After costs a client of client-go, if only an
// unreachable peer could serve its request: the attempts, and the time until the error.
// docs/proxy.md has these numbers.
func TestWhatRetryAfterCostsOneRequest(t *testing.T) {
	for _, request := range requests {
		for header, want := range map[string]string{
			"":         "1 attempt, 0s",
			"1":        "11 attempts, 10s",
			"as it is": "1 attempt, 0s",
		} {
			t.Run(request.name+", Retry-After "+header, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCutOff(t, header, time.Hour)
					began := time.Now()
					if err := request.send(t.Context(), c.client(t)); err == nil {
						t.Fatal("no error")
					}
					got := fmt.Sprintf("%d attempts, %s", c.attempts, time.Since(began))
					if strings.Replace(got, "1 attempts", "1 attempt", 1) != want && got != want {
						t.Errorf("%s; want %s", got, want)
					}
				})
			})
		}
	}
}

// loops are programs that try until they succeed. Each returns when it has succeeded.
var loops = []struct {
	name string
	run  func(t *testing.T, c *cutOff)
}{
	// A controller whose queue has the usual delays: from 5 ms, twice as long each time.
	{"a controller", func(t *testing.T, c *cutOff) {
		client := c.client(t)
		limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
		queue := workqueue.NewTypedRateLimitingQueue(limiter)
		defer queue.ShutDown()
		queue.Add("x")
		for {
			item, _ := queue.Get()
			_, err := client.List(t.Context(), metav1.ListOptions{})
			queue.Done(item)
			if err == nil {
				return
			}
			queue.AddRateLimited(item)
		}
	}},
	// An informer, until its first list.
	{"an informer", func(t *testing.T, c *cutOff) {
		client := c.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		listed := make(chan struct{}, 1)
		source := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := client.List(ctx, o)
				if err == nil {
					listed <- struct{}{}
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents != nil {
					return nil, fmt.Errorf("the peer has no streaming lists")
				}
				return client.Watch(ctx, o)
			},
		}
		reflector := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{})
		var running sync.WaitGroup
		running.Go(func() { reflector.RunWithContext(ctx) })
		<-listed
		cancel()
		running.Wait()
	}},
}

// A program that retries by itself works again some time after the peer does. The test measures the
// longest such delay over outages of several lengths. docs/proxy.md has these numbers.
func TestWhatRetryAfterCostsAProgram(t *testing.T) {
	short, long := steps(time.Second, 9*time.Second), steps(10*time.Second, time.Minute)
	for _, c := range []struct {
		loop    int
		header  string
		outages []time.Duration
		most    time.Duration // the longest delay
	}{
		{0, "", short, 5 * time.Second},
		{0, "1", short, time.Second},
		{0, "", long, 41 * time.Second},
		{0, "1", long, time.Second},
		// A reflector waits 0.8 s to 1.6 s first, twice as long each time, and 30 s to 60 s at
		// most.
		{1, "", short, 13 * time.Second},
		{1, "1", short, time.Second},
		{1, "", long, 60 * time.Second},
		{1, "1", long, 13 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s, Retry-After %q, %s to %s", loops[c.loop].name, c.header, c.outages[0], c.outages[len(c.outages)-1]), func(t *testing.T) {
			var late time.Duration
			for _, outage := range c.outages {
				synctest.Test(t, func(t *testing.T) {
					server := newCutOff(t, c.header, outage)
					loops[c.loop].run(t, server)
					late = max(late, time.Since(server.until))
				})
			}
			t.Logf("at most %s late", late)
			if late > c.most {
				t.Errorf("%s late; want at most %s", late, c.most)
			}
		})
	}
}

// steps returns lengths of outages from one length to another, a quarter of a second apart.
func steps(from, to time.Duration) (all []time.Duration) {
	for d := from; d <= to; d += 250 * time.Millisecond {
		all = append(all, d)
	}
	return all
}

// The test measures how long other work of a controller waits, at most, while a peer is cut off.
// The controller has one worker and five items that only this peer could serve. Every second it
// gets an item that needs no peer.
func TestWhatRetryAfterCostsOtherWork(t *testing.T) {
	for header, want := range map[string][2]time.Duration{"": {0, 10 * time.Millisecond}, "1": {40 * time.Second, 60 * time.Second}} {
		t.Run("Retry-After "+header, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCutOff(t, header, time.Hour)
				client := c.client(t)
				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
				added := map[string]time.Time{}
				var most time.Duration
				for i := range 5 {
					queue.Add(fmt.Sprint("unreachable ", i))
				}
				var working sync.WaitGroup
				var mu sync.Mutex
				working.Go(func() {
					for {
						item, ended := queue.Get()
						if ended {
							return
						}
						if strings.HasPrefix(item, "unreachable") {
							if _, err := client.List(t.Context(), metav1.ListOptions{}); err == nil {
								t.Error("no error")
							}
							queue.AddRateLimited(item)
						} else {
							mu.Lock()
							most = max(most, time.Since(added[item]))
							mu.Unlock()
						}
						queue.Done(item)
					}
				})
				for i := range 60 {
					item := fmt.Sprint("reachable ", i)
					mu.Lock()
					added[item] = time.Now()
					mu.Unlock()
					queue.Add(item)
					<-time.After(time.Second)
				}
				queue.ShutDown()
				working.Wait()
				t.Logf("at most %s", most)
				if most < want[0] || most > want[1] {
					t.Errorf("other work waits for %s; want %s to %s", most, want[0], want[1])
				}
			})
		})
	}
}
