package reports

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// Several faults of one kind become one clause, because a headline should not say the same thing
// three times.
func TestFaultClauses(t *testing.T) {
	const distrusted = "the certificate is not accepted"
	for name, c := range map[string]struct {
		faults []Fault
		want   []string
	}{
		"one": {[]Fault{{Kind: "cut", From: "b", To: "a"}}, []string{"b→a was cut"}},
		"two alike": {[]Fault{{Kind: "cut", From: "b", To: "a"}, {Kind: "kill", Server: "c"}, {Kind: "cut", From: "c", To: "a"}},
			[]string{"b→a and c→a were cut", "c was killed"}},
		"again":           {[]Fault{{Kind: "pause", Server: "a"}, {Kind: "pause", Server: "a"}}, []string{"a was paused"}},
		"other toxics":    {[]Fault{{Kind: "latency", To: "a"}, {Kind: "latency", To: "b"}}, []string{"all→a and all→b had latency"}},
		"discovery fails": {[]Fault{{Kind: "break-discovery", To: "a"}}, []string{"a discovery document of a failed for its peers"}},
		"distrusted": {
			[]Fault{{Kind: history.FaultMisconfiguration, From: "b", To: "a", Detail: distrusted},
				{Kind: history.FaultMisconfiguration, From: "c", To: "a", Detail: distrusted}},
			[]string{"b→a and c→a could not work (the certificate is not accepted)"},
		},
		"a server itself": {[]Fault{{Kind: history.FaultMisconfiguration, Server: "a", Detail: "its peer authority: missing"}},
			[]string{"a was misconfigured (its peer authority: missing)"}},
		"no proxy": {[]Fault{{Kind: history.FaultProxyOff, Server: "a"}, {Kind: history.FaultProxyOff, Server: "b"}},
			[]string{"a and b had their proxies switched off"}},
		"of old": {[]Fault{{Kind: history.FaultMisconfiguration, From: "b", To: "a"}}, []string{"b→a had misconfiguration"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := faultClauses(c.faults); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
