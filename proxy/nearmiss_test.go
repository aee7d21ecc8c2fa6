package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// near returns names that look almost like a name that counts, but are different names.
func near(name string) []string {
	return []string{"", name + "2", name + " ", " " + name, "X-" + name, name[:len(name)-1], name[1:], strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, "-", "")}
}

// A header of the hop counts. No other header counts.
func TestNamesNearTheHopsHeaders(t *testing.T) {
	for _, name := range []string{HopHeader, HopHeaderPublished, RefusedHeader} {
		if !isHopHeader(name) || http.CanonicalHeaderKey(name) != name {
			t.Errorf("%q does not count, or is not canonical", name)
		}
		for _, n := range near(name) {
			if isHopHeader(n) {
				t.Errorf("%q counts as %q", n, name)
			}
		}
	}
}

// A header counts if a server may read an identity from it: the configured headers, and the default
// ones, which the peer may read. For a prefix, every header that begins with it counts. For a name,
// only a header with exactly this name counts.
func TestNamesNearIdentityHeaders(t *testing.T) {
	names, err := newIdentityHeaders(IdentityHeaders{User: "front-USER", UID: "Front-Uid", Group: "front-group", ExtraPrefix: "FRONT-more-"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Front-User", "Front-Uid", "Front-Group"} {
		if !names.is(name) {
			t.Errorf("%q does not count", name)
		}
		for _, n := range near(name) {
			if names.is(n) {
				t.Errorf("%q counts as %q", n, name)
			}
		}
	}
	for _, prefix := range []string{"Front-More-", "X-Remote-"} {
		for _, rest := range []string{"", "a", "%2f", "User"} {
			if !names.is(prefix + rest) {
				t.Errorf("%q does not count, though it begins with %q", prefix+rest, prefix)
			}
		}
		for _, n := range []string{"", prefix[:len(prefix)-1], "A-" + prefix, " " + prefix, strings.ReplaceAll(prefix, "-", "_") + "User"} {
			if names.is(n) {
				t.Errorf("%q counts, though it does not begin with %q", n, prefix)
			}
		}
	}
	for _, other := range []string{"Authorization", "Front", "Front-", "Remote-User", "X-Forwarded-User", "X-Remote"} {
		if names.is(other) {
			t.Errorf("%q counts as an identity header", other)
		}
	}
}
