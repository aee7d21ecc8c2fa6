package invariant

import (
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Whatever cannot be keeps every invariant from passing, and is no violation.
func TestWhatCannotBeProvesNothing(t *testing.T) {
	run := func(options ...func(*history.Operation)) *story {
		s := tell().ask(20, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 1, 9, true)
		return s.ask(30, "b", widgets, 200, options...).ask(31, "b", widgets, 200)
	}
	change := func(f func(*history.Operation)) *story { return run(f) }
	lives := func(f func(h *history.History)) *story {
		s := run().step("stop c", 80, 82).stop("c", 80)
		f(s.h)
		return s
	}
	hop := func(f func(*history.Hop)) *story {
		s := run()
		f(&s.h.Hops[1])
		return s
	}
	for _, c := range []struct {
		why   string // empty: it can be
		story *story
	}{
		{"", run()},
		{"no Audit-ID", change(func(o *history.Operation) { o.ID = "" })},
		{"different operations have the Audit-ID op-0000", change(func(o *history.Operation) { o.ID = "op-0000" })},
		{"did not send any", change(func(o *history.Operation) { o.Start, o.End = -2, -1 })},
		{"neither an answer nor a failure", func() *story { s := run(); s.h.Operations[1].Received = &history.Received{}; return s }()},
		{"although the connection was refused", change(failed(history.FailureRefused))},
		{"", change(failed(history.FailureCanceled))},
		{"its status is 999", change(func(o *history.Operation) { o.Status = 999 })},
		{"something does not exist", change(missingObject)},
		{"a negative number", change(func(o *history.Operation) { o.Items = -1 })},
		{"its verb is", change(verb("look"))},
		{"body is of the kind", change(func(o *history.Operation) { o.Body = "song" })},
		{"by a server that did not run", run().stop("c", 80).ask(100, "c", widgets, 200)},
		{"", run().stop("c", 80).ask(100, "c", widgets, 0)},

		{"no server \"z\"", hop(func(h *history.Hop) { h.Server = "z" })},
		{"ends before it starts", hop(func(h *history.Hop) { h.End = h.Start - 1 })},
		{"before the operation was sent", hop(func(h *history.Hop) { h.Start -= 5 * time.Second })},
		{"after the operation was answered", hop(func(h *history.Hop) { h.Start, h.End = h.Start+5*time.Second, h.End+5*time.Second })},
		{"", hop(func(h *history.Hop) { h.Operation = "of another client" })},

		{"", lives(func(*history.History) {})},
		{"was not started", lives(func(h *history.History) { h.Lifecycle = h.Lifecycle[1:] })},
		{"ready twice", lives(func(h *history.History) { h.Lifecycle = append(h.Lifecycle, h.Lifecycle[1]) })},
		{"no step does that", lives(func(h *history.History) { (&story{h}).pause("b", 40, 50) })},
		{"", lives(func(h *history.History) { (&story{h}).pause("b", 80, 81) })},
		{"says that it emulates 1.37, which is newer", lives(func(h *history.History) { h.Lifecycle[1].Version, h.Lifecycle[1].Reports = "v1.36.3", "1.37" })},
	} {
		violated, doubted := "", 0
		verdicts, decisions := Decide(c.story.h)
		for _, v := range verdicts {
			if v.Violations > 0 {
				violated += v.Name + " "
			}
			if strings.Contains(v.Reason, "cannot be") {
				doubted++
				if !strings.Contains(v.Reason, c.why) || c.why == "" {
					t.Errorf("%s: %s", c.why, v.Reason)
				}
			}
		}
		if violated != "" || c.why != "" && doubted != len(verdicts) {
			t.Errorf("%s: %q are violated, and %d of %d verdicts are in doubt", c.why, violated, doubted, len(verdicts))
		}
		if len(decisions) != len(c.story.h.Operations) {
			t.Errorf("%s: %d decisions about %d operations", c.why, len(decisions), len(c.story.h.Operations))
		}
	}
}
