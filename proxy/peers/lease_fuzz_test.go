package peers

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// FuzzLeases lets an informer see any leases. Each line of the script is one event and one lease:
//
//	OP|NAME|LABEL|HOLDER|SERVER|ADDRESS|SERVES|SECONDS
//
// OP begins with the kind of lease (i or e), then says what happened to it (+, = or -). SECONDS is
// both the age and the duration of the lease, and how long the next event takes to come.
func FuzzLeases(f *testing.F) {
	f.Add("i+|apiserver-b|l|b_1|||0\ne+|skewproof-proxy-apiserver-b|l|b_1|apiserver-b|192.0.2.2:6443|d1|0\n" +
		"e=|skewproof-proxy-apiserver-b|l|b_1|apiserver-b|192.0.2.2:6443|d2|5\ni-|apiserver-b|l|b_1|||5")
	f.Add("e+|skewproof-proxy-self|l|s_1|self|192.0.2.1:6443|d|0\ne=|skewproof-proxy-self|l|s_2|self|192.0.2.9:6443|d|1\n" +
		"e=|skewproof-proxy-self|l|s_1|self|192.0.2.1:6443|d|1")
	f.Add("e+|skewproof-proxy-||||||-1\ne+|skewproof-proxy-b|l||b|x|y|9999999999\ni+||l|h|||0\ne-|b|||||0")
	f.Fuzz(func(t *testing.T, script string) {
		synctest.Test(t, func(t *testing.T) {
			live, addresses := map[proxy.ServerID]bool{}, map[proxy.ServerID]string{}
			w := newLeaseWatch(func(events []proxy.Event) { checkEvents(t, live, addresses, events) })
			identities, endpoints := handler(w.identity, w.identityGone), handler(w.endpoint, w.endpointGone)
			lines := strings.Split(script, "\n")
			for _, line := range lines[:min(len(lines), 100)] {
				op, lease, pause := leaseOf(line)
				time.Sleep(pause)
				handlers := identities
				if strings.HasPrefix(op, "e") {
					handlers = endpoints
				}
				switch {
				case strings.HasSuffix(op, "-"):
					handlers.OnDelete(cache.DeletedFinalStateUnknown{Key: lease.Namespace + "/" + lease.Name, Obj: lease})
				case strings.HasSuffix(op, "="):
					handlers.OnUpdate(nil, lease)
				default:
					handlers.OnAdd(lease, true)
				}
			}
			if again := w.roster.Changes(); len(again) > 0 {
				t.Fatalf("the roster reports again, though no lease has changed: %v", again)
			}
		})
	})
}

// leaseOf reads one line of a script. Missing fields are empty.
func leaseOf(line string) (op string, lease *coordinationv1.Lease, pause time.Duration) {
	fields := append(strings.Split(line, "|"), make([]string, 8)...)
	seconds, _ := strconv.ParseInt(fields[7], 10, 32)
	lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: fields[1]}}
	if fields[2] != "" {
		lease.Labels = map[string]string{IdentityLabel: IdentityValue, ComponentLabel: ComponentValue}
	}
	if fields[3] != "" {
		lease.Spec.HolderIdentity = &fields[3]
	}
	lease.Annotations = map[string]string{ServerAnnotation: fields[4], AddressAnnotation: fields[5], ServesAnnotation: fields[6]}
	if seconds != 0 {
		of := int32(seconds)
		lease.Spec.LeaseDurationSeconds = &of
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Duration(seconds) * time.Second)}
	}
	return fields[0], lease, max(0, time.Duration(seconds%7200)*time.Second)
}

// checkEvents applies events to the state after the earlier events. It checks that a peer that
// leaves was there, that an address can be dialled, and that the local server is not a peer.
func checkEvents(t *testing.T, live map[proxy.ServerID]bool, addresses map[proxy.ServerID]string, events []proxy.Event) {
	t.Helper()
	isPeer := func(id proxy.ServerID) {
		if id == "self" {
			t.Fatalf("the local server is reported as a peer: %v", events)
		}
	}
	for _, e := range events {
		switch e := e.(type) {
		case proxy.PeerAppeared:
			isPeer(e.ID)
			if e.Incarnation == "" {
				t.Fatalf("%s appeared without an incarnation: %v", e.ID, events)
			}
			live[e.ID] = true
		case proxy.PeerGone:
			isPeer(e.ID)
			if !live[e.ID] {
				t.Fatalf("%s is gone, and was not there: %v", e.ID, events)
			}
			delete(live, e.ID)
		case proxy.PeerChanged:
			if !live[e.ID] {
				t.Fatalf("%s has changed, and is not there: %v", e.ID, events)
			}
		case proxy.PeerAddress:
			isPeer(e.ID)
			if e.Address != "" {
				if address, err := ParseAddress(e.Address); err != nil || address != e.Address {
					t.Fatalf("%s has the address %q: %v", e.ID, e.Address, err)
				}
			}
			if addresses[e.ID] == e.Address {
				t.Fatalf("%s has the address %q, as before: %v", e.ID, e.Address, events)
			}
			addresses[e.ID] = e.Address
		default:
			t.Fatalf("a lease makes no %T", e)
		}
	}
}
