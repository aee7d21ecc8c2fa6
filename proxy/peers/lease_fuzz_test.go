package peers

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// FuzzLeases lets informers see any leases and keys. Each line of the script is one event:
//
//	OP|NAME|LABEL|HOLDER|HOST|PORT|SECONDS
//
// OP begins with i for an identity lease or k for a key, then says what happened to it (+, = or -).
// HOST is the server's host name in a lease, and the address in a key. SECONDS is the age of the
// lease, the generation of the key, and how long the next event takes to come.
func FuzzLeases(f *testing.F) {
	f.Add("i+|apiserver-b|l|b_1||0|0\nk+|apiserver-b|||192.0.2.2|6443|0\nk=|apiserver-b|||192.0.2.2|6443|5\ni-|apiserver-b|l|b_1|||5\nk-|apiserver-b|||||1")
	f.Add("k+|self|||192.0.2.1|6443|0\nk=|self|||192.0.2.9|6443|1\nk=|self|||192.0.2.1|6443|2")
	f.Add("k+|||||-1|0\nk+|b|||x|y|9999999999\ni+||l|h|||0\nk-|b|||||0")
	f.Fuzz(func(t *testing.T, script string) {
		synctest.Test(t, func(t *testing.T) {
			live, addresses := map[proxy.ServerID]bool{}, map[proxy.ServerID]string{}
			w := newLeaseWatch(func(events []proxy.Event) { checkEvents(t, live, addresses, events) })
			identities, keys := handler(w.identity, func(n cache.ObjectName) { w.identityGone(n.Name) }), handler(w.key, w.keyGone)
			lines := strings.Split(script, "\n")
			for _, line := range lines[:min(len(lines), 100)] {
				op, object, pause := objectOf(line)
				time.Sleep(pause)
				handlers := identities
				if strings.HasPrefix(op, "k") {
					handlers = keys
				}
				switch {
				case strings.HasSuffix(op, "-"):
					handlers.OnDelete(object)
				case strings.HasSuffix(op, "="):
					handlers.OnUpdate(nil, object)
				default:
					handlers.OnAdd(object, true)
				}
			}
			if again := w.roster.Changes(); len(again) > 0 {
				t.Fatalf("the roster reports again, though nothing has changed: %v", again)
			}
		})
	})
}

// objectOf reads one line of a script. Missing fields are empty.
func objectOf(line string) (op string, object any, pause time.Duration) {
	fields := append(strings.Split(line, "|"), make([]string, 7)...)
	seconds, _ := strconv.ParseInt(fields[6], 10, 32)
	pause = max(0, time.Duration(seconds%7200)*time.Second)
	if strings.HasPrefix(fields[0], "k") {
		return fields[0], keyAt(fields[1], fields[4]+":"+fields[5], seconds), pause
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: fields[1]}}
	if fields[2] != "" {
		lease.Labels = map[string]string{IdentityLabel: IdentityValue, corev1.LabelHostname: fields[4]}
	}
	if fields[3] != "" {
		lease.Spec.HolderIdentity = &fields[3]
	}
	if seconds != 0 {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Duration(seconds) * time.Second)}
	}
	return fields[0], lease, pause
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
			live[e.ID] = true
		case proxy.PeerGone:
			isPeer(e.ID)
			if !live[e.ID] {
				t.Fatalf("%s is gone, and was not there: %v", e.ID, events)
			}
			delete(live, e.ID)
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
