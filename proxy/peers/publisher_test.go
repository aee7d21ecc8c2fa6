package peers

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/skewproof/skewproof/proxy"
)

// publishing is a publisher that runs against a fake cluster, on synctest's clock.
type publishing struct {
	client      *fake.Clientset
	publisher   *Publisher
	incarnation atomic.Pointer[string]
	ready       atomic.Bool
	serves      words
	stop        context.CancelFunc
	ended       chan error
}

// words is a string that goroutines may change concurrently.
type words struct{ atomic.Value }

func (w *words) Load() string { s, _ := w.Value.Load().(string); return s }

func publish(t *testing.T, prepare func(*publishing)) *publishing {
	t.Helper()
	p := &publishing{client: fake.NewClientset(), ended: make(chan error, 1)}
	p.ready.Store(true)
	p.is("i1")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p.stop = cancel
	p.publisher = &Publisher{
		Client: p.client, Server: "apiserver-a", Address: "192.0.2.1:6443",
		Incarnation: func() string { return *p.incarnation.Load() }, Ready: p.ready.Load,
	}
	if prepare != nil {
		prepare(p)
	}
	go func() { p.ended <- p.publisher.Run(ctx) }()
	synctest.Wait()
	return p
}

func (p *publishing) is(incarnation string) { p.incarnation.Store(&incarnation) }

// lease is the lease in the cluster, nil if there is none.
func (p *publishing) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	synctest.Wait()
	l, err := p.client.CoordinationV1().Leases(Namespace).Get(t.Context(), "skewproof-proxy-apiserver-a", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPublisherPublishesRenewsAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		l := p.lease(t)
		if l == nil {
			t.Fatal("no lease")
		}
		if !isEndpointLease(l) {
			t.Errorf("not labelled as an endpoint lease: %v", l.Labels)
		}
		got, usable, err := readEndpointLease(l)
		want := EndpointLease{ID: "apiserver-a", Holder: "i1", Renewed: got.Renewed, Duration: 15 * time.Second, Address: "192.0.2.1:6443"}
		if err != nil || !usable || got != want {
			t.Errorf("reads as %+v, %v, %v; want %+v", got, usable, err, want)
		}
		if !l.Spec.RenewTime.Time.Equal(time.Now()) || !l.Spec.AcquireTime.Equal(l.Spec.RenewTime) {
			t.Errorf("renewed at %v and acquired at %v, want both now, %v", l.Spec.RenewTime, l.Spec.AcquireTime, time.Now())
		}
		began := time.Now()
		time.Sleep(4 * time.Second)
		if l := p.lease(t); !l.Spec.RenewTime.Time.Equal(began) {
			t.Errorf("renewed before 5 s")
		}
		time.Sleep(time.Second)
		if l := p.lease(t); !l.Spec.RenewTime.Time.Equal(began.Add(5 * time.Second)) {
			t.Errorf("renewed at %v, want after 5 s", l.Spec.RenewTime)
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if l := p.lease(t); l != nil {
			t.Errorf("the lease is still there: %v", l)
		}
	})
}

func TestPublisherFollowsReadinessAndIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		p.ready.Store(false)
		began := time.Now()
		time.Sleep(30 * time.Second)
		if l := p.lease(t); l == nil || !l.Spec.RenewTime.Time.Equal(began) {
			t.Fatalf("renewed, or deleted, while not ready: %v", l)
		}
		p.ready.Store(true)
		p.is("i2")
		time.Sleep(time.Second)
		if l := p.lease(t); *l.Spec.HolderIdentity != "i2" || !l.Spec.AcquireTime.Time.Equal(time.Now()) {
			t.Fatalf("held by %s since %v, want i2 since now", *l.Spec.HolderIdentity, l.Spec.AcquireTime)
		}
		p.is("") // the server's process has ended, and there is no new one yet
		time.Sleep(10 * time.Second)
		if l := p.lease(t); *l.Spec.HolderIdentity != "i2" {
			t.Fatalf("held by %q without an incarnation", *l.Spec.HolderIdentity)
		}
		p.stop()
		<-p.ended
	})
}

func TestPublisherNotReadyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publishing{client: fake.NewClientset(), ended: make(chan error, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.publisher = &Publisher{Client: p.client, Server: "apiserver-a", Address: "192.0.2.1:6443",
			Incarnation: func() string { return "i1" }, Ready: p.ready.Load}
		go func() { p.ended <- p.publisher.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if n := len(p.client.Actions()); n != 0 {
			t.Fatalf("%d requests by a server that was never ready: %v", n, p.client.Actions())
		}
	})
}

// The publisher does not delete a lease that its successor holds.
func TestPublisherLeavesItsSuccessorsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		l := p.lease(t).DeepCopy()
		successor := "i9"
		l.Spec.HolderIdentity = &successor
		if _, err := p.client.CoordinationV1().Leases(Namespace).Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if p.lease(t) == nil {
			t.Fatal("the successor's lease was deleted")
		}
	})
}

// The publisher keeps the fields that others have written. It takes over the lease of an earlier
// process.
func TestPublisherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := "i0"
		p := publish(t, func(p *publishing) {
			c := p.client
			if err := c.Tracker().Add(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "skewproof-proxy-apiserver-a", Namespace: Namespace, Labels: map[string]string{"other": "label"}},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &old},
			}); err != nil {
				t.Fatal(err)
			}
		})
		l := p.lease(t)
		if *l.Spec.HolderIdentity != "i1" || l.Labels["other"] != "label" || !isEndpointLease(l) {
			t.Fatalf("not taken over: %+v", l)
		}
		p.stop()
		<-p.ended
	})
}

func TestPublisherRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Int32
		failures.Store(3)
		p := publish(t, func(p *publishing) {
			c := p.client
			c.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return failures.Add(-1) >= 0, nil, errors.New("no")
			})
		})
		if p.lease(t) != nil {
			t.Fatal("published at once")
		}
		time.Sleep(3 * time.Second)
		if p.lease(t) == nil {
			t.Fatal("not published after three failures, a second apart")
		}
		p.stop()
		<-p.ended
	})
}

// If the API server does not answer, Run still ends in bounded time. A lease that a failed attempt
// may have written is deleted.
func TestPublisherLeavesInBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		p.client.PrependReactor("delete", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(5 * time.Second)
			return true, nil, context.DeadlineExceeded
		})
		began := time.Now()
		p.stop()
		err := <-p.ended
		if err == nil || !strings.Contains(err.Error(), "it expires in 15s") {
			t.Fatalf("Run = %v, want an error that says when the lease expires", err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Fatalf("took %s to leave", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, func(p *publishing) {
			c := p.client
			c.PrependReactor("create", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
				_ = c.Tracker().Add(a.(clienttesting.CreateAction).GetObject())
				return true, nil, errors.New("the answer was lost")
			})
		})
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if l := p.lease(t); l != nil {
			t.Fatalf("left behind: %+v", l)
		}
	})
}

// The lease may change after it is read and before it is deleted.
func TestPublisherLeavesDespiteConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		conflicts := 2
		p.client.PrependReactor("delete", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts--
			return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "x", errors.New("changed"))
		})
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if p.lease(t) != nil || conflicts != -1 {
			t.Fatalf("still there after %d conflicts", 2-conflicts)
		}
	})
}

func TestPublishedOnceWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		p := publish(t, func(p *publishing) {
			c := p.client
			c.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refused.Load(), nil, errors.New("no")
			})
		})
		if p.publisher.Published() {
			t.Error("published, though nothing could be written")
		}
		refused.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if !p.publisher.Published() {
			t.Error("not published, though the lease is there")
		}
		p.stop()
		<-p.ended
	})
}

func TestPublisherValidates(t *testing.T) {
	good := func() *Publisher {
		return &Publisher{Client: fake.NewClientset(), Server: "a", Address: "192.0.2.1:6443", Incarnation: func() string { return "i" }, Ready: func() bool { return true }}
	}
	for name, spoil := range map[string]func(*Publisher){
		"no client":      func(p *Publisher) { p.Client = nil },
		"no incarnation": func(p *Publisher) { p.Incarnation = nil },
		"no readiness":   func(p *Publisher) { p.Ready = nil },
		"no server":      func(p *Publisher) { p.Server = "" },
		"odd server":     func(p *Publisher) { p.Server = "A/B" },
		"long server":    func(p *Publisher) { p.Server = proxy.ServerID(strings.Repeat("a", 250)) },
		"no address":     func(p *Publisher) { p.Address = "0.0.0.0:6443" },
	} {
		p := good()
		spoil(p)
		if err := p.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
