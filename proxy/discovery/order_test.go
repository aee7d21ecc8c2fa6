package discovery

import (
	"math/rand/v2"
	"slices"
	"testing"

	utilsort "k8s.io/apimachinery/pkg/util/sort"
)

// Random lists of few names have duplicates, contradictions, and names that one list lacks.
func TestMergeOrdersIsUpstreams(t *testing.T) {
	contradicting, topological, whole := 0, 0, 0
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(seed, 1))
		lists := make([][]string, random.IntN(4))
		for i := range lists {
			for range random.IntN(6) {
				lists[i] = append(lists[i], string(rune('a'+random.IntN(8))))
			}
		}
		want, got := utilsort.MergePreservingRelativeOrder(lists), mergeOrders(lists)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", lists, got, want)
		}
		switch {
		case slices.ContainsFunc(lists, func(l []string) bool { return slices.Equal(l, got) }):
			whole++
		case slices.IsSorted(got):
			contradicting++
		default:
			topological++
		}
	}
	if whole < 1000 || contradicting < 1000 || topological < 1000 {
		t.Errorf("%d whole, %d alphabetical, %d topological: want at least 1000 each", whole, contradicting, topological)
	}
}
