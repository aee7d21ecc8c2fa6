package peers

import (
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/skewproof/skewproof/proxy"
)

// near returns values that resemble one value: in case, by a prefix or a suffix, with white space.
func near(value string) []string {
	all := []string{
		"", strings.ToUpper(value), strings.ToUpper(value[:1]) + value[1:], value + "x", "x" + value, value[1:], value[:len(value)-1], value + " ", " " + value,
		value + "\x00", value + "/", strings.ReplaceAll(value, "-", "_"), "*",
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == value })
}

// A lease says something about servers only in the right namespace and with exactly the right
// label.
func TestLeasesNearThoseOfServers(t *testing.T) {
	for kind, c := range map[string]struct {
		of           func() *coordinationv1.Lease
		is           func(*coordinationv1.Lease) bool
		label, value string
	}{
		"identity": {func() *coordinationv1.Lease { return identityLease("a", "h", epoch) }, isIdentityLease, IdentityLabel, IdentityValue},
		"endpoint": {func() *coordinationv1.Lease { return endpointLease("a", "h", "192.0.2.1:6443", epoch) }, isEndpointLease, ComponentLabel, ComponentValue},
	} {
		if !c.is(c.of()) {
			t.Fatalf("an %s lease is none", kind)
		}
		for _, namespace := range near(Namespace) {
			l := c.of()
			if l.Namespace = namespace; c.is(l) {
				t.Errorf("an %s lease in the namespace %q counts", kind, namespace)
			}
		}
		for _, value := range near(c.value) {
			l := c.of()
			if l.Labels[c.label] = value; c.is(l) {
				t.Errorf("an %s lease with the label %q counts", kind, value)
			}
		}
		for _, label := range near(c.label) {
			l := c.of()
			if l.Labels = map[string]string{label: c.value}; c.is(l) {
				t.Errorf("an %s lease with the label's name %q counts", kind, label)
			}
		}
	}
}

// The name of an endpoint lease and the server that it is about must agree, byte for byte.
func TestNamesNearThatOfAnEndpointLease(t *testing.T) {
	const id = "apiserver-abc"
	for _, name := range near(EndpointLeaseName(id)) {
		l := endpointLease(id, "h", "192.0.2.1:6443", epoch)
		l.Name = name
		if got, usable, err := readEndpointLease(l); usable || err == nil {
			t.Errorf("the lease %q is about %q", name, got.ID)
		}
	}
	for _, server := range near(id) {
		l := endpointLease(id, "h", "192.0.2.1:6443", epoch)
		l.Annotations[ServerAnnotation] = server
		if got, usable, err := readEndpointLease(l); usable || err == nil {
			t.Errorf("a lease named for %s that is about %q counts for %q", id, server, got.ID)
		}
	}
}

// Only the one EndpointSlice says where servers without a proxy are.
func TestNamesNearThatOfTheSlice(t *testing.T) {
	for _, c := range []struct{ namespaces, names []string }{
		{near("default"), []string{serviceName}},
		{[]string{"default"}, near(serviceName)},
		{[]string{"default"}, []string{"kubernetes-abcde", "kubernetes-", "kubernetes.default"}},
	} {
		for _, namespace := range c.namespaces {
			for _, name := range c.names {
				s := newSearch()
				of := slice(name, 6443, "192.0.2.1")
				of.Namespace = namespace
				s.list(of, false)
				s.move("192.0.2.1:6443", "host-a")
				if found := s.finds(); len(found) != 0 {
					t.Errorf("the slice %q/%q leads to %v", namespace, name, found)
				}
			}
		}
	}
	s := newSearch()
	s.list(slice(serviceName, 6443, "192.0.2.1"), false)
	s.move("192.0.2.1:6443", "host-a")
	if found := s.finds(); found[proxy.ServerID("a")] != "1" {
		t.Errorf("the slice itself leads to %v", found)
	}
}
