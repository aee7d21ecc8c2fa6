package share

import (
	"fmt"
	"testing"
)

// If 16 callers take as many units as they can and give none back, the next caller still gets some.
func TestEveryCallerGetsSomething(t *testing.T) {
	const capacity = 400
	for _, greedy := range []int{1, 2, 4, 8, 16} {
		var p Pool
		most := 0
		for i := range greedy {
			n := 0
			for p.Take(fmt.Sprint("greedy-", i), 1, capacity) {
				n++
			}
			most = max(most, n)
		}
		if most > capacity/4 {
			t.Errorf("%d greedy callers: one has %d of %d, want at most a quarter", greedy, most, capacity)
		}
		if !p.Take("modest", 1, capacity) {
			t.Errorf("%d greedy callers have %d of %d: another caller gets nothing", greedy, p.Used(), capacity)
		}
	}
}

func TestAloneACallerGetsAQuarter(t *testing.T) {
	for capacity, want := range map[int]int{1: 1, 2: 1, 4: 1, 8: 2, 100: 25, 400: 100} {
		var p Pool
		n := 0
		for p.Take("alone", 1, capacity) {
			n++
		}
		if n != want {
			t.Errorf("of %d a caller gets %d, want %d", capacity, n, want)
		}
	}
}

func TestCapacityIsNeverExceeded(t *testing.T) {
	var p Pool
	for i := range 100 {
		p.Take(fmt.Sprint(i), 7, 100)
	}
	if p.Used() > 100 || p.Used() < 90 {
		t.Errorf("%d of 100 are taken, want nearly all and not more", p.Used())
	}
}

func TestWhatIsGivenBackIsForgotten(t *testing.T) {
	var p Pool
	for range 3 {
		if !p.Take("a", 2, 100) {
			t.Fatal("not taken")
		}
	}
	p.Give("a", 4)
	if p.Used() != 2 || p.Callers() != 1 {
		t.Errorf("%d taken by %d callers, want 2 by 1", p.Used(), p.Callers())
	}
	p.Give("a", 2)
	if p.Used() != 0 || p.Callers() != 0 {
		t.Errorf("%d taken by %d callers, want none", p.Used(), p.Callers())
	}
}
