package fault

import (
	"strings"
	"testing"
	"time"
)

func TestAFaultIsReadFromWords(t *testing.T) {
	for line, want := range map[string]Fault{
		"cut b a":                                     {Kind: Cut, From: "b", To: "a"},
		"cut client b":                                {Kind: Cut, From: Client, To: "b"},
		"latency b a latency=200ms jitter=50ms":       {Kind: Latency, From: "b", To: "a", Latency: 200 * time.Millisecond, Jitter: 50 * time.Millisecond},
		"bandwidth a etcd rate=16000 direction=up":    {Kind: Bandwidth, From: "a", To: Etcd, Rate: 16000, Direction: Up},
		"slicer b a size=100 variation=10 delay=20us": {Kind: Slicer, From: "b", To: "a", Size: 100, Variation: 10, Delay: 20 * time.Microsecond},
		"limit-data b a bytes=4096 direction=down":    {Kind: LimitData, From: "b", To: "a", Bytes: 4096, Direction: Down},
		"reset b a after=1s":                          {Kind: Reset, From: "b", To: "a", After: time.Second},
		"timeout b a after=1500ms direction=both":     {Kind: Timeout, From: "b", To: "a", After: 1500 * time.Millisecond, Direction: Both},
		"slow-close b a delay=2s":                     {Kind: SlowClose, From: "b", To: "a", Delay: 2 * time.Second},
	} {
		if got, err := Parse(strings.Fields(line)); err != nil || got != want {
			t.Errorf("%s is read as %+v, error %v; want %+v", line, got, err, want)
		}
	}
}

func TestWordsThatAreNoFault(t *testing.T) {
	for line, want := range map[string]string{
		"":                                      "write KIND FROM TO",
		"cut":                                   "write KIND FROM TO",
		"cut b":                                 "write KIND FROM TO",
		"cutt b a":                              `unknown kind "cutt": did you mean "cut"?`,
		"cut b a now":                           `"now" is not a parameter: write it as NAME=VALUE`,
		"latency b a latency=":                  `"latency=" is not a parameter`,
		"latency b a latency=2":                 `parameter latency: "2" is not a duration`,
		"latency b a latency=1s latency=2s":     `parameter "latency" is given twice`,
		"latency b a latancy=1s":                `unknown parameter "latancy": did you mean "latency"?`,
		"latency b a":                           `parameter "latency" is missing`,
		"bandwidth b a rate=fast":               `parameter rate: "fast" is not a whole number`,
		"bandwidth b a rate=-1000":              "is negative",
		"cut b a latency=1s":                    `cut takes no parameter "latency"`,
		"cut b a direction=up":                  "cut has no direction",
		"latency b a latency=1s direction=left": `unknown direction "left"`,
	} {
		if f, err := Parse(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v, error %v; want %q", line, f, err, want)
		}
	}
}
