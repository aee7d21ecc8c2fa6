package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestAStepIsReadFromWords(t *testing.T) {
	cutBA := cut("b", "a")
	slow := fault.Fault{Kind: fault.Latency, From: fault.Client, To: "b", Latency: 2 * time.Second}
	for line, want := range map[string]Step{
		"restart b":                        {Action: Restart, Server: "b"},
		"restart b v1.37.1":                {Action: Replace, Server: "b", Version: "v1.37.1"},
		"replace b v1.37.1":                {Action: Replace, Server: "b", Version: "v1.37.1"},
		"start b":                          {Action: Start, Server: "b"},
		"start b v1.37.1":                  {Action: Start, Server: "b", Version: "v1.37.1"},
		"stop b":                           {Action: Stop, Server: "b"},
		"kill b":                           {Action: Kill, Server: "b"},
		"pause b":                          {Action: Pause, Server: "b"},
		"resume b":                         {Action: Resume, Server: "b"},
		"cut b a":                          {Action: Inject, Fault: &cutBA, Label: "cut b a"},
		"inject cut b a":                   {Action: Inject, Fault: &cutBA, Label: "cut b a"},
		"latency client b latency=2s":      {Action: Inject, Fault: &slow, Label: "latency client b latency=2s"},
		"heal":                             {Action: Heal},
		"heal cut b a":                     {Action: Heal, Label: "cut b a"},
		"break-discovery a /apis":          {Action: BreakDiscovery, Server: "a", Path: "/apis"},
		"break-discovery a /api cut-short": {Action: BreakDiscovery, Server: "a", Path: "/api", Failure: fault.CutShort},
		"restore-discovery a /apis":        {Action: RestoreDiscovery, Server: "a", Path: "/apis"},
	} {
		got, err := ParseStep(strings.Fields(line))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", line, err, diff)
		}
	}
}

func TestWordsThatAreNoStep(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "no action given: write one of bandwidth, break-discovery, compact-etcd",
		"restrat b":                    `unknown action "restrat": did you mean "restart"?`,
		"dance b":                      `unknown action "dance": use one of`,
		"sweep":                        `unknown action "sweep"`,
		"restart":                      `"restart": write restart SERVER [VERSION]`,
		"restart b v1.37.1 now":        "write restart SERVER [VERSION]",
		"replace b":                    `"replace b": write replace SERVER VERSION`,
		"kill b -9":                    `write kill SERVER`,
		"cut b":                        "write KIND FROM TO",
		"inject":                       "write KIND FROM TO",
		"inject cutt b a":              `did you mean "cut"?`,
		"cut b *":                      "a step is about one link",
		"cut client etcd":              "there is no such link",
		"break-discovery a":            "write break-discovery SERVER PATH",
		"break-discovery a /x":         "want /api or /apis",
		"break-discovery a /api often": `failure "often": want one of`,
		"restore-discovery a /api x":   "write restore-discovery SERVER PATH",
	} {
		if s, err := ParseStep(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v, error %v; want %q", line, s, err, want)
		}
	}
}
