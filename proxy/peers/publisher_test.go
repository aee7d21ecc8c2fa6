package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// errLost is the error of a write that was carried out.
var errLost = errors.New("the answer was lost")

// publishing is a publisher that runs against a fake etcd, on synctest's clock.
type publishing struct {
	t         *testing.T
	etcd      *fakeEtcd
	publisher *Publisher
	ready     atomic.Bool
	stop      context.CancelFunc
	ended     chan error
}

func publish(t *testing.T, prepare func(*publishing)) *publishing {
	t.Helper()
	p := &publishing{t: t, etcd: newFakeEtcd(t), ended: make(chan error, 1)}
	p.ready.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p.stop = cancel
	p.publisher = &Publisher{Etcd: p.etcd, Server: "apiserver-a", Address: "192.0.2.1:6443", Ready: p.ready.Load}
	if prepare != nil {
		prepare(p)
	}
	go func() { p.ended <- p.publisher.Run(ctx) }()
	synctest.Wait()
	return p
}

// key is the key in etcd, nil if there is none.
func (p *publishing) key() *corev1.Endpoints {
	synctest.Wait()
	return p.etcd.key("apiserver-a")
}

func TestPublisherPublishesRenewsAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		if key, err := readKey(p.key()); err != nil || key != (Key{ID: "apiserver-a", Address: "192.0.2.1:6443", Renewal: 1}) {
			t.Errorf("reads as %+v, %v", key, err)
		}
		time.Sleep(4 * time.Second)
		if key := p.key(); key.Generation != 1 {
			t.Error("renewed before 5 s")
		}
		time.Sleep(time.Second)
		if key := p.key(); key.Generation != 2 {
			t.Error("not renewed after 5 s")
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if key := p.key(); key != nil {
			t.Errorf("the key is still there: %v", key)
		}
	})
}

func TestPublisherFollowsReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		p.ready.Store(false)
		time.Sleep(14 * time.Second)
		if key := p.key(); key == nil || key.Generation != 1 {
			t.Fatalf("renewed, or removed, while not ready: %v", key)
		}
		time.Sleep(time.Second)
		if key := p.key(); key != nil {
			t.Fatalf("still there: %v", key)
		}
		p.ready.Store(true)
		time.Sleep(time.Second)
		if p.key() == nil {
			t.Fatal("not published when it was ready again")
		}
		p.stop()
		<-p.ended
	})
}

func TestPublisherNotReadyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, func(p *publishing) { p.ready.Store(false) })
		time.Sleep(time.Minute)
		synctest.Wait()
		p.etcd.fails = func(string) error { return errors.New("nothing must be removed") }
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if p.etcd.writes != 0 {
			t.Fatalf("%d writes by a server that was never ready", p.etcd.writes)
		}
	})
}

// The key may have the address of another server with the same identity.
func TestPublisherLeavesTheKeyOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, nil)
		if err := p.etcd.Renew(t.Context(), "apiserver-a", "192.0.2.2:6443"); err != nil {
			t.Fatal(err)
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if p.key() == nil {
			t.Fatal("the key of another server was removed")
		}
	})
}

func TestPublisherRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 3
		p := publish(t, func(p *publishing) {
			p.etcd.fails = func(string) error {
				if failures--; failures >= 0 {
					return errors.New("no")
				}
				return nil
			}
		})
		if p.key() != nil || p.publisher.Published() {
			t.Fatal("published at once")
		}
		time.Sleep(3 * time.Second)
		if p.key() == nil || !p.publisher.Published() {
			t.Fatal("not published after three failures, a second apart")
		}
		p.stop()
		<-p.ended
	})
}

// If etcd does not answer, Run says when the key expires. A key that a failed attempt may have
// written is removed.
func TestPublisherThatCannotWriteOrRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, func(p *publishing) {
			p.etcd.fails = func(verb string) error {
				return map[string]error{"withdraw": context.DeadlineExceeded}[verb]
			}
		})
		p.stop()
		if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "it expires in 15s") {
			t.Fatalf("Run = %v, want an error that says when the key expires", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, func(p *publishing) {
			p.etcd.fails = func(verb string) error { return map[string]error{"renew": errLost}[verb] }
		})
		if p.key() == nil {
			t.Fatal("nothing was written")
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
		if key := p.key(); key != nil {
			t.Fatalf("left behind: %+v", key)
		}
	})
}

func TestPublisherValidates(t *testing.T) {
	for name, spoil := range map[string]func(*Publisher){
		"no etcd":      func(p *Publisher) { p.Etcd = nil },
		"no readiness": func(p *Publisher) { p.Ready = nil },
		"no address":   func(p *Publisher) { p.Address = "0.0.0.0:6443" },
	} {
		p := &Publisher{Etcd: newFakeEtcd(t), Server: "a", Address: "192.0.2.1:6443", Ready: func() bool { return true }}
		spoil(p)
		if err := p.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
