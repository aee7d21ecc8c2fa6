package local

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
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
	for _, p := range Places(scenario.SubjectBuiltin, servers) {
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

func TestOnlyAPlaceWithASidecarHasTwoAddresses(t *testing.T) {
	for _, subject := range scenario.Subjects {
		p := place(subject, 0, "a")
		if p.Own.Addr() != p.Real.Addr() {
			t.Errorf("%s: the kube-apiserver listens on %s and its front door is %s: that is another host", subject, p.Own, p.Real)
		}
		if behind := p.Own != p.Real; behind != (subject == scenario.SubjectReference) {
			t.Errorf("%s: the kube-apiserver listens on %s, the front door is %s", subject, p.Own, p.Real)
		}
	}
}

// Real servers v1.36.3 and v1.37.1 on hosts with these names had these identities.
func TestPlaceKnowsTheIdentityThatTheServerWillTake(t *testing.T) {
	for name, want := range map[string]string{
		"a": "apiserver-2tpgmlbwcz6wvzejdfn7mej2p4",
		"b": "apiserver-jnrjmwo4ppicmwnfyxmuk5l5mi",
	} {
		if got := place(scenario.SubjectBuiltin, 0, name).ID; got != want {
			t.Errorf("identity on host %q is %q, want %q", name, got, want)
		}
	}
}

// The paths to a server differ only in their addresses.
func TestTheKubeconfigHasEveryWayToAServer(t *testing.T) {
	for subject, want := range map[string]map[string]string{
		scenario.SubjectBuiltin: {
			"a": "https://198.19.0.1:6443", "a-direct": "https://198.18.0.6:6443", "b": "https://198.19.0.2:6443", "b-direct": "https://198.18.0.10:6443",
		},
		scenario.SubjectReference: {
			"a": "https://198.19.0.1:6443", "a-direct": "https://198.18.0.6:6444", "b": "https://198.19.0.2:6443", "b-direct": "https://198.18.0.10:6444",
		},
	} {
		want["balancer"] = "https://198.19.255.2:6443"
		files := Files{Keys: t.TempDir()}
		if _, err := credentials(Places(subject, []history.Server{{Name: "a"}, {Name: "b"}}), files); err != nil {
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
				t.Errorf("%s, context %s: error %v, insecure: %v", subject, context, err, way.Insecure)
			}
			got[context] = way.Host
		}
		if diff := cmp.Diff(want, got); diff != "" || config.CurrentContext != "a" {
			t.Errorf("%s, current context %q (-want +got):\n%s", subject, config.CurrentContext, diff)
		}
	}
}
