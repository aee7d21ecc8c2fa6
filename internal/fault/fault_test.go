package fault

import (
	"strings"
	"testing"
	"time"
)

func TestSentences(t *testing.T) {
	for _, test := range []struct {
		want  string
		fault Fault
	}{
		{"cut, a→b", Fault{Kind: Cut, From: "a", To: "b"}},
		{"latency 200ms ±50ms, b→a", Fault{Kind: Latency, From: "b", To: "a", Latency: 200 * time.Millisecond, Jitter: 50 * time.Millisecond}},
		{"latency 1s downstream, a→b", Fault{Kind: Latency, From: "a", To: "b", Latency: time.Second, Direction: Down}},
		{"timeout (black hole) upstream, client→b", Fault{Kind: Timeout, From: Client, To: "b", Direction: Up}},
		{"timeout after 3s, a→b", Fault{Kind: Timeout, From: "a", To: "b", After: 3 * time.Second}},
		{"reset, a→b", Fault{Kind: Reset, From: "a", To: "b"}},
		{"reset after 10ms, a→b", Fault{Kind: Reset, From: "a", To: "b", After: 10 * time.Millisecond}},
		{"bandwidth 64 kB/s, a→etcd", Fault{Kind: Bandwidth, From: "a", To: Etcd, Rate: 64000}},
		{"limit-data 4096 B, a→b", Fault{Kind: LimitData, From: "a", To: "b", Bytes: 4096}},
		{"slicer 64 B ±8 B every 2ms, a→b", Fault{Kind: Slicer, From: "a", To: "b", Size: 64, Variation: 8, Delay: 2 * time.Millisecond}},
		{"slow-close 5s, *→b", Fault{Kind: SlowClose, From: Any, To: "b", Delay: 5 * time.Second}},
	} {
		t.Run(test.want, func(t *testing.T) {
			if err := test.fault.Validate(); err != nil {
				t.Error(err)
			}
			if got := test.fault.String(); got != test.want {
				t.Errorf("reads %q", got)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault Fault
		want  string
	}{
		{"a slip", Fault{Kind: "latancy", From: "a", To: "b"}, `unknown kind "latancy": did you mean "latency"?`},
		{"a missing dash", Fault{Kind: "slowclose", From: "a", To: "b"}, `did you mean "slow-close"?`},
		{"no such kind", Fault{Kind: "earthquake", From: "a", To: "b"}, "use one of bandwidth, cut, latency"},
		{"no kind", Fault{From: "a", To: "b"}, "kind is missing"},
		{"no from", Fault{Kind: Cut, To: "b"}, "from is missing"},
		{"no to", Fault{Kind: Cut, From: "a"}, "to is missing"},
		{"direction", Fault{Kind: Reset, From: "a", To: "b", Direction: "left"}, `unknown direction "left"`},
		{"direction of a cut", Fault{Kind: Cut, From: "a", To: "b", Direction: Up}, "cut has no direction"},
		{"foreign parameter", Fault{Kind: Cut, From: "a", To: "b", Latency: 1}, `cut takes no parameter "latency": it takes none`},
		{"foreign parameter, some taken", Fault{Kind: Latency, From: "a", To: "b", Latency: 1e6, Bytes: 1}, `it takes latency, jitter`},
		{"missing latency", Fault{Kind: Latency, From: "a", To: "b"}, `parameter "latency" is missing`},
		{"negative latency", Fault{Kind: Latency, From: "a", To: "b", Latency: -1e6}, `parameter "latency" is negative`},
		{"fraction of a millisecond", Fault{Kind: Latency, From: "a", To: "b", Latency: 1500 * time.Microsecond}, "whole units of 1ms"},
		{"much jitter", Fault{Kind: Latency, From: "a", To: "b", Latency: 1e6, Jitter: 2e6}, `"jitter" (2ms) is more than "latency"`},
		{"missing rate", Fault{Kind: Bandwidth, From: "a", To: "b"}, `parameter "rate" is missing`},
		{"odd rate", Fault{Kind: Bandwidth, From: "a", To: "b", Rate: 1500}, "whole units of 1000"},
		{"missing bytes", Fault{Kind: LimitData, From: "a", To: "b"}, `parameter "bytes" is missing`},
		{"missing size", Fault{Kind: Slicer, From: "a", To: "b"}, `parameter "size" is missing`},
		{"much variation", Fault{Kind: Slicer, From: "a", To: "b", Size: 4, Variation: 4}, `"variation" (4) is not less than "size"`},
		{"huge slice", Fault{Kind: Slicer, From: "a", To: "b", Size: 1 << 40}, "chunks of at most 32768 bytes"},
		{"missing delay", Fault{Kind: SlowClose, From: "a", To: "b"}, `parameter "delay" is missing`},
		{"fraction after", Fault{Kind: Timeout, From: "a", To: "b", After: 1}, "whole units of 1ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.fault.Validate()
			if err == nil {
				t.Fatal("was accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

func TestEveryKindHasAValidFault(t *testing.T) {
	var seen []Kind
	for _, f := range valid("a", "b") {
		if err := f.Validate(); err != nil {
			t.Error(err)
		}
		seen = append(seen, f.Kind)
	}
	if kinds := Kinds(); len(seen) != len(kinds) {
		t.Errorf("%d kinds are tried of %v", len(seen), kinds)
	}
}

// valid returns one fault of each kind.
func valid(from, to string) []Fault {
	return []Fault{
		{Kind: Bandwidth, From: from, To: to, Rate: 1000},
		{Kind: Cut, From: from, To: to},
		{Kind: Latency, From: from, To: to, Latency: 200e6, Jitter: 50e6},
		{Kind: LimitData, From: from, To: to, Bytes: 100},
		{Kind: Reset, From: from, To: to},
		{Kind: Slicer, From: from, To: to, Size: 16, Variation: 4, Delay: 1e6},
		{Kind: SlowClose, From: from, To: to, Delay: 1e6},
		{Kind: Timeout, From: from, To: to},
	}
}
