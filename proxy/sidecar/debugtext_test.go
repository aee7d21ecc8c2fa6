package sidecar

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// /debug/peers shows people, and programs, everything that is known of each peer: what is not known
// is not shown as if it were.
func TestPeersAreDescribed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	policy, err := proxy.PresetNamed("reference")
	if err != nil {
		t.Fatal(err)
	}
	table := proxy.NewTable(policy, "apiserver-a")
	for _, e := range []proxy.Event{
		proxy.PeerAppeared{ID: "b", Incarnation: "b_1"}, proxy.PeerAddress{ID: "b", Address: "192.0.2.2:6443"},
		proxy.PeerAppeared{ID: "c", Incarnation: "c_1"}, proxy.PeerAddress{ID: "c", Address: "192.0.2.3:6443", Direct: true},
		proxy.PeerAppeared{ID: "d"},
		proxy.Fetched{At: now.Add(-90 * time.Second), Results: []proxy.FetchResult{
			{ID: "b", Incarnation: "b_1", Version: "v1.37.1"},
			{ID: "c", Incarnation: "c_1", Version: "v1.36.3", Roots: [2]proxy.RootResult{{}, {Failed: "it is down"}}},
		}},
		proxy.PeerFailed{ID: "b", At: now.Add(-time.Second)},
	} {
		table = table.Observe(e)
	}
	b, _ := table.Peer("b")
	left := b.EjectedUntil.Sub(now)
	if left <= 0 {
		t.Fatalf("b is not avoided: %+v", b)
	}
	flight := func(id proxy.ServerID) int { return map[proxy.ServerID]int{"b": 3}[id] }
	describe := func(at time.Time) string {
		report := PeersReport{Server: "apiserver-a", Advertised: "192.0.2.1:6443", Policy: "reference", At: at, Peers: peerReports(table, flight, at)}
		if at.Equal(now) {
			report.Incarnation, report.Synced, report.LocalKnown, report.LocalReady, report.Mismatches = "a_1", true, true, true, []string{"a flag"}
		}
		w := httptest.NewRecorder()
		debugPeers(func() PeersReport { return report }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/peers?format=text", nil))
		if got := w.Header(); got.Get("Content-Type") != "text/plain; charset=utf-8" || got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Cache-Control") != cacheControl {
			t.Errorf("header %v", got)
		}
		var lines []string
		for line := range strings.Lines(w.Body.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
	head := "server apiserver-a, incarnation a_1, advertised at 192.0.2.1:6443, policy reference\nsynced true, local server known true, ready true\n\nMISMATCH: a flag\n\n"
	columns := "PEER LIVE VERSION ADDRESS PROXY IN FLIGHT EJECTED FOR /api AGE /apis AGE LAST FAILURE INCARNATION\n"
	want := head + columns +
		"b true v1.37.1 192.0.2.2:6443 yes 3 " + left.Round(100*time.Millisecond).String() + " 1m30s 1m30s - b_1\n" +
		"c true v1.36.3 192.0.2.3:6443 no 0 - 1m30s never /apis: it is down c_1\n" +
		"d true - - - 0 - never never - -"
	if got := describe(now); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// At the moment when b may be used again, it is not avoided any more.
	end := b.EjectedUntil
	for at, ejected := range map[time.Time]bool{end.Add(-time.Second): true, end: false, end.Add(time.Second): false} {
		if got := strings.Contains(describe(at), "yes 3 - "); got == ejected {
			t.Errorf("%s before the end: avoided %t", end.Sub(at), ejected)
		}
	}
	if got := describe(end); !strings.HasPrefix(got, "server apiserver-a, incarnation -, advertised at 192.0.2.1:6443, policy reference\nsynced false, local server known false, ready false\n\nPEER") {
		t.Errorf("got\n%s", got)
	}
}
