package definer

import (
	"encoding/base64"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The registration must lead to where the program is, by a name that its certificate is good for.
// (Real servers follow it in internal/e2e's runs.)
func TestARegistrationLeadsToTheProgram(t *testing.T) {
	address := netip.MustParseAddrPort("198.19.254.1:8443")
	text := func(o *unstructured.Unstructured, path ...string) string {
		t.Helper()
		s, found, err := unstructured.NestedString(o.Object, path...)
		if !found || err != nil {
			t.Fatalf("%v: found %v, %v", path, found, err)
		}
		return s
	}
	at, registered := service(address), apiService(scenario.Definition{Group: "metrics.example.com"}, "v1", address, []byte("PEM"))
	if got := registered.GetName(); got != "v1.metrics.example.com" {
		t.Errorf("its name is %s: the API wants VERSION.GROUP", got)
	}
	if text(registered, "spec", "service", "name") != at.GetName() || text(registered, "spec", "service", "namespace") != at.GetNamespace() {
		t.Errorf("it leads to another Service than %s/%s", at.GetNamespace(), at.GetName())
	}
	if at.GetName() != extension.ServiceName || at.GetNamespace() != extension.ServiceNamespace || text(at, "spec", "externalName") != "198.19.254.1" {
		t.Errorf("the Service is %v", at.Object)
	}
	if port, _, _ := unstructured.NestedInt64(registered.Object, "spec", "service", "port"); port != 8443 {
		t.Errorf("the port is %d", port)
	}
	if text(registered, "spec", "caBundle") != base64.StdEncoding.EncodeToString([]byte("PEM")) {
		t.Error("the authority is another")
	}
}
