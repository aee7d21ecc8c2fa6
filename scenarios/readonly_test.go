package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

func TestWhatIsSomebodyElsesIsOnlyRead(t *testing.T) {
	servers := []Server{{Name: "a", Version: "v1.37.1"}}
	for name, c := range map[string]struct {
		plan    Plan
		refused string
	}{
		"nothing is done":       {Plan{Servers: servers, Steps: []Step{{Action: Soak, For: time.Second}, {Action: Sweep}, {Action: Outlast, For: time.Second}}}, ""},
		"a restart":             {Plan{Servers: servers, Steps: []Step{{Action: Restart, Server: "a"}}}, "step 1, restart a"},
		"a fault":               {Plan{Servers: servers, Steps: []Step{{Action: Sweep}, {Action: Inject, Fault: &fault.Fault{Kind: fault.Cut, From: "a", To: "b"}}}}, "step 2"},
		"a definition":          {Plan{Servers: servers, Steps: []Step{{Action: Define, Definition: &Definition{Group: "example.com", Resource: "widgets"}}}}, "step 1"},
		"a configuration":       {Plan{Servers: []Server{{Name: "a", Setup: &Setup{Proxy: Off}}}}, "server a has to be configured"},
		"traffic that connects": {Plan{Servers: servers, Traffic: UpgradeTraffic}, "more than reading"},
		"traffic that writes":   {Plan{Servers: servers, Traffic: LargeListTraffic}, "more than reading"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.plan.OnlyReads()
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want one that says %q", err, c.refused)
			}
		})
	}
}
