package reports

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Count is how many requests to one server, of one class, were answered in one way.
type Count struct {
	// Server is the server that was asked.
	Server string `json:"server"`
	// Class says who could have served the request, by ground truth and not by the answer.
	Class invariant.Class `json:"class"`
	// Status is the HTTP status code; 0 if no response header arrived.
	Status int `json:"status"`
	// Detail tells apart what the status alone does not: for 404 "object" or "resource", for a missing or broken
	// response why ("refused", "reset", "timeout", …).
	Detail string `json:"detail,omitempty"`
	// Count is how many there were.
	Count int `json:"count"`
}

func newCounts(facts *invariant.Facts) []Count {
	counts := map[Count]int{}
	for o, class := range facts.Classes() {
		key := Count{Server: o.Server, Class: class, Status: o.Status, Detail: string(o.Missing)}
		if o.Failure != history.FailureNone {
			key.Detail = string(o.Failure)
		}
		counts[key]++
	}
	out := make([]Count, 0, len(counts))
	for key, n := range counts {
		key.Count = n
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(
			cmp.Compare(a.Server, b.Server),
			cmp.Compare(order(a.Class), order(b.Class)),
			cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return out
}
