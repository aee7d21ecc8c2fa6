package proxy

import (
	"strings"
	"testing"
)

// near returns names that look almost like a name that counts, but are different names.
func near(name string) []string {
	return []string{"", name + "2", name + " ", " " + name, "X-" + name, name[:len(name)-1], name[1:], strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, "-", "")}
}

// spelled returns spellings of one header's name.
func spelled(name string) []string {
	return []string{name, strings.ToLower(name), strings.ToUpper(name), strings.ToLower(name[:5]) + strings.ToUpper(name[5:])}
}

// A header of the hop counts in every spelling. No other header counts.
func TestNamesNearTheHopsHeaders(t *testing.T) {
	for _, name := range hopHeaders {
		for _, s := range spelled(name) {
			if !isHopHeader(s) {
				t.Errorf("%q does not count as %q", s, name)
			}
		}
		for _, n := range near(name) {
			if isHopHeader(n) {
				t.Errorf("%q counts as %q", n, name)
			}
		}
		// Unicode folds some letters to ASCII letters. In a header's name, they must not count as
		// those letters.
		for from, to := range map[string]string{"k": "\u212a", "K": "\u212a", "s": "\u017f", "S": "\u017f"} {
			if folded := strings.Replace(name, from, to, 1); folded != name && isHopHeader(folded) {
				t.Errorf("%q counts as %q", folded, name)
			}
		}
	}
}

// A header counts, in every spelling, if a server may read an identity from it: the configured
// headers, and the default ones, which the peer may read. For a prefix, every header that begins
// with it counts. For a name, only a header with exactly this name counts.
func TestNamesNearIdentityHeaders(t *testing.T) {
	names, err := newIdentityHeaders(IdentityHeaders{User: "Front-User", UID: "Front-Uid", Group: "Front-Group", ExtraPrefix: "Front-More-"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Front-User", "Front-Uid", "Front-Group"} {
		for _, s := range spelled(name) {
			if !names.is(s) {
				t.Errorf("%q does not count as %q", s, name)
			}
		}
		for _, n := range near(name) {
			if names.is(n) {
				t.Errorf("%q counts as %q", n, name)
			}
		}
	}
	for _, prefix := range []string{"Front-More-", "X-Remote-"} {
		for _, s := range spelled(prefix) {
			for _, rest := range []string{"", "a", "%2f", "User"} {
				if !names.is(s + rest) {
					t.Errorf("%q does not count, though it begins with %q", s+rest, prefix)
				}
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
