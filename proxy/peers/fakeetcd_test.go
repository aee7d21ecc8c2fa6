package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/skewproof/skewproof/proxy"
)

// fakeEtcd has the keys of kube-apiservers, which expire by synctest's clock.
type fakeEtcd struct {
	servers, masters, marks source
	fails                   func(verb string) error // nil: nothing fails
	away                    atomic.Bool             // nothing is written, and nothing expires

	mu      sync.Mutex
	keys    map[proxy.ServerID]*corev1.Endpoints
	expires map[proxy.ServerID]*time.Timer
	writes  int
}

// source lists and watches keys.
type source struct{ *fcache.FakeControllerSource }

func (source) IsWatchListSemanticsUnSupported() bool { return true }

func newFakeEtcd(t *testing.T) *fakeEtcd {
	e := &fakeEtcd{
		servers: source{fcache.NewFakeControllerSource()}, masters: source{fcache.NewFakeControllerSource()},
		marks: source{fcache.NewFakeControllerSource()},
		keys:  map[proxy.ServerID]*corev1.Endpoints{}, expires: map[proxy.ServerID]*time.Timer{},
	}
	t.Cleanup(func() { e.servers.Shutdown(); e.masters.Shutdown(); e.marks.Shutdown() })
	return e
}

func (e *fakeEtcd) Servers() cache.ListerWatcher { return e.servers }
func (e *fakeEtcd) Masters() cache.ListerWatcher { return e.masters }
func (e *fakeEtcd) Marks() cache.ListerWatcher   { return e.marks }

func (e *fakeEtcd) fail(verb string) error {
	switch {
	case e.away.Load():
		return errors.New("etcd is away")
	case e.fails == nil:
		return nil
	}
	return e.fails(verb)
}

// keyAt is a key as a kube-apiserver writes it.
func keyAt(id, address string, generation int64) *corev1.Endpoints {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: id, Generation: generation},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: host}}, Ports: []corev1.EndpointPort{{Port: int32(n)}}}},
	}
}

func (e *fakeEtcd) Renew(_ context.Context, id proxy.ServerID, address string) error {
	err := e.fail("renew")
	if err != nil && err != errLost {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writes++
	before := e.keys[id]
	generation := int64(1)
	if before != nil {
		generation += before.Generation
		e.expires[id].Stop()
	}
	e.keys[id] = keyAt(string(id), address, generation)
	if before == nil {
		e.servers.Add(e.keys[id])
		e.marks.Add(mark(id))
	} else {
		e.servers.Modify(e.keys[id])
	}
	e.expires[id] = time.AfterFunc(KeyTTL, func() { e.remove(id) })
	return err
}

func (e *fakeEtcd) Withdraw(_ context.Context, id proxy.ServerID, address string) error {
	if err := e.fail("withdraw"); err != nil {
		return err
	}
	if key := e.key(id); key != nil && key.Subsets[0].Addresses[0].IP+":"+strconv.Itoa(int(key.Subsets[0].Ports[0].Port)) == address {
		e.remove(id)
		e.marks.Delete(mark(id))
	}
	return nil
}

func mark(id proxy.ServerID) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: string(id)}}
}

func (e *fakeEtcd) key(id proxy.ServerID) *corev1.Endpoints {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[id]
}

func (e *fakeEtcd) remove(id proxy.ServerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if key := e.keys[id]; key != nil && !e.away.Load() {
		e.expires[id].Stop()
		delete(e.keys, id)
		e.servers.Delete(key)
	}
}

// master is the key of a kube-apiserver at an IP address.
func master(ip string) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: ip}, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: ip}}}}}
}
