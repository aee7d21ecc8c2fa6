package search

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

func TestChangesAreReadWhole(t *testing.T) {
	for text, want := range map[string]string{
		"Knowledge.KeepLastGood=yes": "true", "Knowledge.KeepLastGood=no": "false", "Knowledge.KeepLastGood=true": "true",
		"Knowledge.Extensions=exact": "exact", "Knowledge.Extensions=cut-out": "cut-out",
		"Discovery.Incomplete=marked": "marked", "Discovery.Incomplete=refused": "refused",
		"Quirks.ExtensionGrace=5m0s": "5m0s", "Quirks.ExtensionGrace=0s": "0s", "Routing.Attempts=3": "3", "Fetching.Jitter=0.2": "0.2", "Fetching.Accept=a/b,c/d": "a/b,c/d",
	} {
		p := proxy.Upstream137()
		if err := change(&p, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		name, _, _ := strings.Cut(text, "=")
		for _, s := range switches(&p) {
			if s.Name == name && s.String() != want {
				t.Errorf("%s makes it %s", text, s)
			}
		}
	}
}

// If a value were misread, the search would test another policy than the requested one.
func TestWrongChangesAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"Knowledge.KeepLastGood=maybe": "want true or false", "Knowledge.KeepLastGood=": "want true or false", "Knowledge.KeepLastGood=true!": "want true or false",
		"Routing.Attempts=3x": "want a whole number, 0 or more", "Routing.Attempts=-5": "want a whole number, 0 or more", "Routing.Attempts=2.5": "want a whole number, 0 or more",
		"Knowledge.Extensions=2": "want ignored, cut-out, filtered or exact", "Knowledge.Extensions=-1": "want ignored", "Knowledge.Extensions=none": "want ignored",
		"Discovery.Incomplete=1":  "want as-complete, marked or refused",
		"Quirks.ExtensionGrace=5": "want a time", "Quirks.ExtensionGrace=-5s": "want a time", "Fetching.Jitter=NaN": "from 0 to 1", "Fetching.Jitter=2": "from 0 to 1",
		"Quirks.ExtensionGrase=5s": "no switch", "Quirks.ExtensionGrace": "want SWITCH=VALUE",
	} {
		p := proxy.Upstream137()
		err := change(&p, text)
		if err == nil || !strings.HasPrefix(err.Error(), `change "`+text+`": `) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", text, err, says)
		}
		if p != proxy.Upstream137() {
			t.Errorf("%s has changed the policy", text)
		}
	}
}

// Every difference between presets must be possible as a change, with the same meaning.
func TestDifferencesAreChanges(t *testing.T) {
	for _, from := range proxy.Presets() {
		for _, to := range proxy.Presets() {
			p := from
			for _, c := range differences(from, to) {
				if err := change(&p, c); err != nil {
					t.Fatalf("%s to %s: %v", from.Name, to.Name, err)
				}
			}
			p.Name = to.Name
			if p != to {
				t.Errorf("%s to %s: the changes make it\n%+v, want\n%+v", from.Name, to.Name, p, to)
			}
		}
	}
}
