package peers

import (
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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
	of := func() *coordinationv1.Lease { return identityLease("a", "h", epoch) }
	if !isIdentityLease(of()) {
		t.Fatal("an identity lease is none")
	}
	for _, namespace := range near(Namespace) {
		l := of()
		if l.Namespace = namespace; isIdentityLease(l) {
			t.Errorf("a lease in the namespace %q counts", namespace)
		}
	}
	for _, value := range near(IdentityValue) {
		l := of()
		if l.Labels[IdentityLabel] = value; isIdentityLease(l) {
			t.Errorf("a lease with the label %q counts", value)
		}
	}
	for _, label := range near(IdentityLabel) {
		l := of()
		if l.Labels = map[string]string{label: IdentityValue}; isIdentityLease(l) {
			t.Errorf("a lease with the label's name %q counts", label)
		}
	}
}

// A host name belongs to one identity, byte for byte.
func TestHostNamesNearThatOfAnIdentity(t *testing.T) {
	const host = "node-b.example"
	for _, name := range near(host) {
		l := identityLease(string(identityOf(host)), "h", epoch)
		l.Labels[corev1.LabelHostname] = name
		if got, err := readIdentityLease(l); err != nil || got.Host != "" {
			t.Errorf("the host name %q counts for %s, %v", name, host, err)
		}
	}
}
