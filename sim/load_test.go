package sim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
)

// loaded runs three servers of two versions under a load for d, and returns its operations.
func loaded(t *testing.T, profile scenario.Traffic, d time.Duration) []history.Operation {
	t.Helper()
	c := three(soak(d))
	c.Requests, c.Load = nil, &Load{QPS: 100, Traffic: profile}
	result := run(t, only(t, proxy.Reference()), c, 1)
	return result.History.Operations
}

func portion(all []history.Operation, of func(*history.Operation) bool) int {
	n := 0
	for i := range all {
		if of(&all[i]) {
			n++
		}
	}
	return 100 * n / max(1, len(all))
}

// If a profile shifted no weight, its scenario could pass without a request of its kind.
func TestTrafficFollowsItsProfile(t *testing.T) {
	general := loaded(t, scenario.GeneralTraffic, 10*time.Second)
	for profile, of := range map[scenario.Traffic]func(*history.Operation) bool{
		scenario.WatchTraffic:       func(op *history.Operation) bool { return op.Verb == "watch" },
		scenario.SubresourceTraffic: func(op *history.Operation) bool { return op.Subresource != "" },
		scenario.FormatTraffic:      func(op *history.Operation) bool { return op.Accept != "" },
		scenario.DiscoveryTraffic: func(op *history.Operation) bool {
			return op.Verb == history.VerbNoPeer || op.Verb == history.VerbDiscovery
		},
	} {
		if got, usual := portion(loaded(t, profile, 10*time.Second), of), portion(general, of); got <= usual {
			t.Errorf("%s: %d %% of the requests are of its kind, and %d %% of the general load", profile, got, usual)
		}
	}
	if sparse := loaded(t, scenario.SparseTraffic, 100*time.Second); len(sparse) < 50 || len(sparse) > 200 {
		t.Errorf("a sparse load of 100 s at a hundredth of 100 requests a second has %d of them", len(sparse))
	}
}

func TestListsAreCountedOverTheirPages(t *testing.T) {
	const size = 3 * workload.LargeListPerLane
	whole, paged := 0, 0
	for _, op := range loaded(t, scenario.LargeListTraffic, 30*time.Second) {
		if !strings.Contains(op.Path, "labelSelector=") || op.Start < 15*time.Second || op.More || op.Status != 200 {
			continue
		}
		if op.Items != size {
			t.Fatalf("%s has %d objects, want %d", op.Path, op.Items, size)
		}
		if strings.Contains(op.Path, "continue=") {
			paged++
		} else {
			whole++
		}
	}
	if whole == 0 || paged == 0 {
		t.Errorf("%d whole lists and %d in pages", whole, paged)
	}
}

// A client may receive something other than a discovery document of an older format. Then the
// operation records why the document cannot be parsed, as on real processes.
func TestAnOlderDocumentThatCannotBeReadSaysWhy(t *testing.T) {
	for body, want := range map[string]string{`{"kind":"APIVersions","versions":["v1"]}`: "", `{"kind":"Status"}`: `got kind "Status"`, "welcome": "invalid character"} {
		s := &Simulator{history: &history.History{Documents: map[string]history.Document{}}}
		op := &operation{
			Operation: history.Operation{Sent: &history.Sent{Verb: history.VerbLegacy, Path: "/api"}, Received: &history.Received{Status: http.StatusOK}},
			x:         &exchange{s: s, status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(body)},
		}
		s.read(op)
		if (op.Message == "") != (want == "") || !strings.Contains(op.Message, want) || (op.Document != "") != (want == "") {
			t.Errorf("%s: document %q, message %q; want %q", body, op.Document, op.Message, want)
		}
	}
}
