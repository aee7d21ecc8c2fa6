package local

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/skewproof/skewproof/internal/history"
)

var testFiles = Files{Keys: "keys", Data: "data", Logs: "logs"}

func TestPlacesShareNoAddress(t *testing.T) {
	var servers []history.Server
	for i := range MaxServers {
		servers = append(servers, history.Server{Name: fmt.Sprintf("s%d", i)})
	}
	benchmarking := netip.MustParsePrefix("198.18.0.0/15") // RFC 2544
	seen := map[netip.Addr]string{
		etcdAdvertised.Addr(): "etcd", balancerAddress.Addr(): "the load balancer", steadyAddress.Addr(): "the load balancer",
		extensionAddress.Addr(): "the extension apiserver",
	}
	if len(seen) != 4 {
		t.Errorf("two of the fixed addresses are the same: %v", seen)
	}
	for _, p := range Places(servers) {
		for what, a := range map[string]netip.Addr{"advertised": p.Advertised.Addr(), "real": p.Real.Addr(), "gateway": p.Subnet.Addr().Next(),
			"decoy": p.decoy().Addr()} {
			if !benchmarking.Contains(a) {
				t.Errorf("%s address of %s, %s, is outside %s", what, p.Name, a, benchmarking)
			}
			if other, taken := seen[a]; taken {
				t.Errorf("%s address of %s, %s, belongs to %s already", what, p.Name, a, other)
			}
			seen[a] = p.Name
		}
		if !p.Subnet.Contains(p.Real.Addr()) || p.Subnet.Masked() != p.Subnet {
			t.Errorf("%s: real address %s, subnet %s", p.Name, p.Real, p.Subnet)
		}
	}
}

// Real servers v1.36.3 and v1.37.1 on hosts with these names had these identities.
func TestPlaceKnowsTheIdentityThatTheServerWillTake(t *testing.T) {
	for name, want := range map[string]string{
		"a": "apiserver-2tpgmlbwcz6wvzejdfn7mej2p4",
		"b": "apiserver-jnrjmwo4ppicmwnfyxmuk5l5mi",
	} {
		if got := place(0, name).ID; got != want {
			t.Errorf("identity on host %q is %q, want %q", name, got, want)
		}
	}
}

// The paths to a server differ only in their addresses.
func TestTheKubeconfigHasEveryWayToAServer(t *testing.T) {
	want := map[string]string{
		"a": "https://198.19.0.1:6443", "a-direct": "https://198.18.0.6:6443", "b": "https://198.19.0.2:6443", "b-direct": "https://198.18.0.10:6443",
		"balancer": "https://198.19.255.2:6443",
	}
	files := Files{Keys: t.TempDir()}
	if _, err := credentials(Places([]history.Server{{Name: "a"}, {Name: "b"}}), files); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(files.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for context := range config.Contexts {
		way, err := clientcmd.NewNonInteractiveClientConfig(*config, context, nil, nil).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rest.TransportFor(way); err != nil || way.Insecure { // this reads the keys
			t.Errorf("context %s: error %v, insecure: %v", context, err, way.Insecure)
		}
		got[context] = way.Host
	}
	if diff := cmp.Diff(want, got); diff != "" || config.CurrentContext != "a" {
		t.Errorf("current context %q (-want +got):\n%s", config.CurrentContext, diff)
	}
}
