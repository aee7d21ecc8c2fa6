package local

import (
	"fmt"
	"net/netip"
	"testing"

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
	seen := map[netip.Addr]string{etcdAdvertised.Addr(): "etcd"}
	for _, p := range Places(scenario.SubjectBuiltin, servers) {
		for what, a := range map[string]netip.Addr{"advertised": p.Advertised.Addr(), "real": p.Real.Addr(), "gateway": p.Subnet.Addr().Next()} {
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

// The identities were read off real servers v1.36.3 and v1.37.1 on hosts of these names.
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
