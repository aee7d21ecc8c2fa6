package invariant

import (
	"strings"
	"testing"
)

// A server that the run did not ask may serve anything, and may come and go. So no invariant fails
// for what only that server may explain. What a named server serves is still judged.
func TestServersThatTheRunDidNotAsk(t *testing.T) {
	other := doc("other", line(widgets), line(gadgets), line(ghosts))
	once := func(n string) *story { // other lists what no named server serves
		return tell(n).document(other).discover(100, "a", "/apis", other).discover(101, "b", "/apis", mergedDoc).discover(102, "c", "/apis", mergedDoc)
	}
	for _, c := range []struct {
		what, name string
		story      func(about string) *story
		fails      bool // also with an unnamed server
	}{
		{"an answer for what only it may serve", "TrueNotFound", func(n string) *story { return tell(n).ask(20, "b", ghosts, 200) }, false},
		{"503 for what only it may serve", "TrueNotFound", func(n string) *story { return tell(n).ask(20, "b", ghosts, 503) }, false},
		{"503 of the server that was chosen", "Available", func(n string) *story { return tell(n).ask(20, "b", gadgets, 503) }, false},
		{"503 for what the server serves itself", "Available", func(n string) *story { return tell(n).ask(20, "a", widgets, 503) }, true},
		{"503 long after the last disturbance", "Converges", func(n string) *story { return tell(n).ask(100, "b", gadgets, 503) }, false},
		{"it is listed by one server only", "Converges", once, false},
		{"it is listed", "DiscoveryComplete", once, false},
		{"a server that is listed by one server only", "DiscoveryDeterministic", once, false},
		{"404 for what a named server serves", "NoFalseNotFound", func(n string) *story { return tell(n).ask(20, "b", gadgets, 404) }, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			if v := verdictOf(t, c.story(c.name).h, c.name); v.Outcome != OutcomeFail {
				t.Errorf("without another server: %s (%s), so this test would prove nothing", v.Outcome, v.Reason)
			}
			h := c.story(c.name).h
			h.Run.Unnamed = []string{"cp-3"}
			got := verdictOf(t, h, c.name)
			if (got.Outcome == OutcomeFail) != c.fails {
				t.Errorf("with another server: %s (%s)", got.Outcome, got.Reason)
			}
			if !c.fails && !strings.Contains(got.Reason, "the cluster has servers that the run did not ask: cp-3") {
				t.Errorf("it is %s because: %s", got.Outcome, got.Reason)
			}
		})
	}
}
