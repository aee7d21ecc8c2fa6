package tape

import (
	"math"
	"slices"
	"testing"
)

func draw(t *Tape, s Stream, n, times int) []int {
	var all []int
	for range times {
		all = append(all, t.Choose(s, n))
	}
	return all
}

// The numbers are fixed here, because a repro file must give the same run with every release of Go.
func TestSeedsGiveTheRecordedChoices(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		stream Stream
		want   []int
	}{
		{0, Workload, []int{88, 43, 2, 97, 10, 32, 17, 77}},
		{1, Workload, []int{25, 8, 29, 56, 69, 54, 21, 40}},
		{1, Picks, []int{64, 63, 31, 79, 14, 42, 45, 39}},
	} {
		if got := draw(Seeded(c.seed), c.stream, 100, 8); !slices.Equal(got, c.want) {
			t.Errorf("seed %d, %s: %v, want %v", c.seed, c.stream, got, c.want)
		}
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	alone, mixed := Seeded(7), Seeded(7)
	var got []int
	for range 20 {
		mixed.Choose(Faults, 9)
		got = append(got, mixed.Choose(Delays, 1000))
		mixed.Choose(Picks, 3)
	}
	if want := draw(alone, Delays, 1000, 20); !slices.Equal(got, want) {
		t.Errorf("delays are %v among other choices, %v alone", got, want)
	}
}

func TestRecordReadsBack(t *testing.T) {
	drawn := Seeded(3)
	drawn.Record(true)
	first := [Streams][]int{}
	for s := range Streams {
		first[s] = draw(drawn, s, 50, 30)
	}
	again := Of(drawn.Recorded())
	for s := range Streams {
		if got := draw(again, s, 50, 30); !slices.Equal(got, first[s]) {
			t.Errorf("%s: %v read back as %v", s, first[s], got)
		}
		if got := draw(again, s, 50, 3); !slices.Equal(got, []int{0, 0, 0}) {
			t.Errorf("%s: after the end of the record: %v, want 0", s, got)
		}
	}
	if drawn.Reset(3); !slices.Equal(draw(drawn, Faults, 50, 30), first[Faults]) {
		t.Error("after a reset to the same seed the choices differ")
	}
}

func TestTooLargeChoiceIsLowered(t *testing.T) {
	tape := Of([Streams][]uint32{Faults: {9, 1}})
	if got := []int{tape.Choose(Faults, 3), tape.Choose(Faults, 3)}; !slices.Equal(got, []int{2, 1}) {
		t.Errorf("got %v, want [2 1]", got)
	}
}

func TestZerosAtTheEndAreNotRecorded(t *testing.T) {
	tape := Of([Streams][]uint32{Delays: {0, 4, 0, 0}})
	if got := tape.Recorded()[Delays]; !slices.Equal(got, []uint32{0, 4}) {
		t.Errorf("kept %v, want [0 4]", got)
	}
}

func TestSingleChoiceTakesNothing(t *testing.T) {
	tape := Seeded(1)
	want := draw(Seeded(1), Picks, 10, 4)
	tape.Choose(Picks, 1)
	tape.Choose(Picks, 0)
	if got := draw(tape, Picks, 10, 4); !slices.Equal(got, want) {
		t.Error("a choice of one took a number from the tape")
	}
}

// A biased generator would not try some schedules.
func TestChoicesAreEven(t *testing.T) {
	const n, times = 10, 100_000
	tape := Seeded(11)
	var counts [n]int
	for range times {
		counts[tape.Choose(Workload, n)]++
	}
	for v, c := range counts {
		if deviation := math.Abs(float64(c)-times/n) / math.Sqrt(times/n); deviation > 5 {
			t.Errorf("%d came %d times of %d", v, c, times)
		}
	}
	hits := 0
	for range times {
		if tape.OneIn(Faults, 100) {
			hits++
		}
	}
	if hits < 800 || hits > 1200 {
		t.Errorf("one in a hundred came %d times in %d", hits, times)
	}
	if tape.OneIn(Faults, 0) || !tape.OneIn(Faults, 1) {
		t.Error("want OneIn(0) false and OneIn(1) true")
	}
}
