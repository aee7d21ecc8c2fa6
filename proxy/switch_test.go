package proxy

import (
	"strings"
	"testing"
)

func TestChangesAreReadWhole(t *testing.T) {
	for text, want := range map[string]string{
		"Knowledge.KeepLastGood=yes": "true", "Knowledge.KeepLastGood=no": "false", "Knowledge.KeepLastGood=true": "true",
		"Knowledge.Extensions=exact": "exact", "Knowledge.Extensions=cut-out": "cut-out",
		"Discovery.Incomplete=marked": "marked", "Discovery.Incomplete=refused": "refused",
		"Quirks.ExtensionGrace=5m0s": "5m0s", "Quirks.ExtensionGrace=0s": "0s", "Routing.Attempts=3": "3", "Fetching.Jitter=0.2": "0.2", "Fetching.Accept=a/b,c/d": "a/b,c/d",
	} {
		p := Upstream137()
		if err := p.Change(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		name, _, _ := strings.Cut(text, "=")
		for _, s := range p.Switches() {
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
		"Quirks.ExtensionGrase=5s": `no switch "Quirks.ExtensionGrase" (did you mean "Quirks.ExtensionGrace"?)`,
		"Incomplete=marked":        `(did you mean "Discovery.Incomplete"?)`, "Name=x": `no switch "Name"; docs`,
		"Quirks.ExtensionGrace": "want SWITCH=VALUE",
	} {
		p := Upstream137()
		err := p.Change(text)
		if err == nil || !strings.HasPrefix(err.Error(), `change "`+text+`": `) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", text, err, says)
		}
		if p != Upstream137() {
			t.Errorf("%s has changed the policy", text)
		}
	}
}

// Every difference between presets must be possible as a change, with the same meaning.
func TestDifferencesAreChanges(t *testing.T) {
	for _, from := range Presets() {
		for _, to := range Presets() {
			p := from
			for _, c := range Differences(from, to) {
				if err := p.Change(c); err != nil {
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

// The flag of the server names a preset, and changes it.
func TestParsePolicy(t *testing.T) {
	for _, c := range []struct {
		text    string
		from    Policy
		changes []string
		refused string
	}{
		{"upstream-1.37", Upstream137(), nil, ""},
		{"reference,Discovery.Incomplete=refused, Routing.Attempts=1", Reference(), []string{"Discovery.Incomplete=refused", "Routing.Attempts=1"}, ""},
		{`reference,"Fetching.Accept=a/b,c/d"`, Reference(), []string{"Fetching.Accept=a/b,c/d"}, ""},
		{"refrence", Policy{}, nil, `no policy "refrence" (did you mean "reference"?): there are alpha-1.28, reference,`},
		{"Routing.Attempts=1,reference", Policy{}, nil, `no policy "Routing.Attempts=1": there are alpha-1.28,`},
		{"reference,Discovery.Incomplete=false", Policy{}, nil, `change "Discovery.Incomplete=false": want as-complete, marked or refused`},
		{"reference,Discovery.Incompete=marked", Policy{}, nil, `did you mean "Discovery.Incomplete"?`},
		{"reference,Fetching.Accept=a/b,c/d", Policy{}, nil, `change "c/d": want SWITCH=VALUE`},
		{"reference,", Policy{}, nil, `change "": want SWITCH=VALUE`},
		{"", Policy{}, nil, `policy "": want one line; want PRESET`},
		{"reference\nRouting.Attempts=1", Policy{}, nil, "want one line"},
		{`reference,"Routing.Attempts=1`, Policy{}, nil, "want PRESET or PRESET,SWITCH=VALUE"},
	} {
		want := c.from
		for _, change := range c.changes {
			if err := want.Change(change); err != nil || want == c.from {
				t.Fatalf("%s: %v", change, err)
			}
		}
		got, err := ParsePolicy(c.text)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) || got != want {
			t.Errorf("%q: %v, want %q; the policy is\n%+v, want\n%+v", c.text, err, c.refused, got, want)
		}
	}
}
