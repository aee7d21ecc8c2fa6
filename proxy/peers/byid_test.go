package peers

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

// byID behaves like a map, and lists its entries in order.
func TestByID(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var got byID[int]
	want := map[proxy.ServerID]int{}
	for i := range 2000 {
		id := proxy.ServerID(rune('a' + r.IntN(8)))
		if r.IntN(3) == 0 {
			got.remove(id)
			delete(want, id)
		} else {
			got.set(id, i)
			want[id] = i
		}
		if _, ok := want[id]; got.has(id) != ok || got.get(id) != want[id] {
			t.Fatalf("after %d changes %s has %d (%t), want %d (%t)", i+1, id, got.get(id), got.has(id), want[id], ok)
		}
		var ids []proxy.ServerID
		for _, e := range got {
			ids = append(ids, e.id)
		}
		if !slices.Equal(ids, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("after %d changes there are %v, want %v", i+1, ids, want)
		}
	}
}
