package invariant

import (
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var leases = history.GVR{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// A restored link to etcd is not yet a connection. Until a kube-apiserver has connected again, it
// counts as having no etcd.
func TestAServerWithoutEtcdIsNotBlamed(t *testing.T) {
	const name = "TrueNotFound"
	all := doc("all", line(pods), line(leases), line(widgets))
	begin := func() *story { return blank(name).start("a", 0, all).start("b", 0, all).start("c", 0, all) }
	cut := func() *story { return begin().cut("b", "etcd", 20, 45) } // 23.7 s may pass before gRPC tries again
	patch := func(o *history.Operation) { o.Verb = "patch" }
	dryRun := func(o *history.Operation) { o.Path += "?dryRun=All" }
	for _, c := range []storyCase{
		{"503 while the server may not have connected to etcd again", cut().ask(46, "b", leases, 200, patch, took(2)).ask(77, "b", ghosts, 503).ask(150, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 when the server must have connected to etcd again", cut().ask(46, "b", leases, 200, patch, took(2)).ask(79, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 when one write was fast and another was slow", cut().ask(46, "b", leases, 200, patch).ask(46, "b", pods, 504, patch, took(8)).
			ask(77, "b", ghosts, 503).ask(150, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 long after the link was healed, when no write was slow", cut().ask(46, "b", leases, 200, patch).ask(57, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while a server that was not cut off writes slowly", cut().ask(50, "c", leases, 200, patch, took(8)).ask(67, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while a write is slow that a peer may have handled", cut().ask(50, "b", widgets, 200, patch, took(8)).ask(67, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while leases are read slowly", cut().ask(50, "b", leases, 200, took(8)).ask(67, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while only a dry run is slow", cut().ask(50, "b", leases, 200, patch, dryRun, took(8)).ask(67, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 after etcd was slow but not cut off", begin().fault("latency", "b", "etcd", 20, 45, false).ask(50, "b", leases, 200, patch, took(8)).ask(57, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
	} {
		t.Run(c.name, func(t *testing.T) { c.want.check(t, verdictOf(t, c.story.h, name)) })
	}
	f := NewFacts(cut().ask(50, "b", leases, 201, patch, took(8)).h)
	if got, want := f.lastDisturbance(), sec(68.7); got != want {
		t.Errorf("the last disturbance ends at %s, want %s: regaining etcd must count as a disturbance", got, want)
	}
}

func TestReconnectDelayIsBounded(t *testing.T) {
	for cut, want := range map[time.Duration]time.Duration{
		0: 1200 * time.Millisecond, 25 * time.Second: 23700 * time.Millisecond, time.Hour: 144 * time.Second, history.Forever: 144 * time.Second,
	} {
		if got := reconnectDelay(cut); got != want {
			t.Errorf("after %s: %s, want %s", cut, got, want)
		}
	}
}

// A server cannot renew its lease before it can reach etcd again.
func TestALeaseExpiresUntilEtcdIsBack(t *testing.T) {
	all := doc("all", line(pods), line(leases))
	waits := func(o *history.Operation) { o.Verb = "patch" }
	cut := func() *story {
		return blank().start("a", 0, all).start("b", 0, all).start("c", 0, all).cut("b", "etcd", 20, 3700)
	}
	for name, c := range map[string]struct {
		story *story
		until history.Time
	}{
		"at once": {cut().ask(3701, "b", leases, 200, waits), sec(3700)},
		"late":    {cut().ask(3701, "b", leases, 504, waits, took(5)), sec(3700 + 144)},
	} {
		f := NewFacts(c.story.h)
		if got, want := f.leaseExpiries("b", nil), []window{{sec(20 + 3600 - 10), c.until}}; !slices.Equal(got, want) {
			t.Errorf("%s: its lease has expired in %v, want %v", name, got, want)
		}
	}
}
