package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// madeUp is the host name of a server that does not exist. It is in the certificates of all
// servers, so that a proxy that believed in names alone would find it.
const madeUp = "localhost"

// A user who may write leases in kube-system makes up the identity lease of a server, and an
// address for it. For the reference it is nothing.
func TestAForgedLeaseChangesNothing(t *testing.T) {
	if isInside() {
		forgedInside(t)
		return
	}
	needsTools(t, "nsenter")
	held := begin(t, "The cluster stays up", "--subject", "reference", "--keep", "--no-load", "--at", "0", "--servers", "2")
	held.again(t, 2*time.Minute)
	if code := held.end(t, syscall.SIGINT); code != inconclusive {
		t.Errorf("exit code %d, want %d; output:\n%s", code, inconclusive, held.out)
	}
}

func forgedInside(t *testing.T) {
	const nobodys = "/apis/nobody.example/v1/things"
	client, err := kubernetes.NewForConfig(insideConfig(t, "b"))
	must(t, err)
	answer := func(path string) (code int, body string) {
		raw, _ := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").MaxRetries(0).Do(t.Context()).StatusCode(&code).Raw()
		return code, string(raw)
	}
	eventually(t, "server b passes requests on", time.Minute, func() bool { code, _ := answer(onlyNewer); return code == http.StatusOK })

	listener, err := net.Listen("tcp", net.JoinHostPort(gatewayOf(t, "b").String(), "0"))
	must(t, err)
	defer listener.Close()
	var dialled atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_ = conn.Close()
		}
	}()

	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name:        lifecycle.Identity(madeUp),
		Labels:      map[string]string{peers.IdentityLabel: peers.IdentityValue, corev1.LabelHostname: madeUp},
		Annotations: map[string]string{"kubernetes.io/peer-advertise-address": listener.Addr().String()},
	}}
	holder, seconds := fmt.Sprintf("%s_1", lease.Name), int32(time.Hour/time.Second)
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}
	for renewals := range 10 { // longer than a key lasts
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		if renewals == 0 {
			lease, err = leases.Create(t.Context(), lease, metav1.CreateOptions{})
		} else {
			lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		must(t, err)
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
			if code, body := answer(nobodys); code != http.StatusNotFound {
				t.Fatalf("%s is answered with %d: %s", nobodys, code, body)
			}
			if code, body := answer("/apis"); code != http.StatusOK || strings.Contains(body, proxy.IncompleteGroup) {
				t.Fatalf("discovery is answered with %d, or is not complete: %s", code, body)
			}
			if code, _ := answer(onlyNewer); code != http.StatusOK {
				t.Fatalf("%s is answered with %d", onlyNewer, code)
			}
		}
	}
	if n := dialled.Load(); n > 0 {
		t.Errorf("the address of the made-up server was dialled %d times", n)
	}
}
