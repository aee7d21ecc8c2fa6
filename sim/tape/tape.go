// Package tape makes the random choices of a simulation. A choice is a number in [0, n); 0 is
// always the healthiest one (no delay, the first peer, no fault), so nothing goes wrong on a tape
// of zeros. A tape is drawn from a seed or read back from a record. The same tape gives the same
// run.
package tape

import "math/bits"

// Stream separates choices by purpose. Shrinking needs this: a change in one stream does not move
// the choices of the others.
type Stream uint8

// The streams.
const (
	Workload Stream = iota // which requests are sent
	Faults                 // which faults happen, and when
	Delays                 // how long each action takes
	Picks                  // which of several equal peers a server chooses
	Streams                // the number of streams
)

// String is the stream's name in files.
func (s Stream) String() string { return [...]string{"workload", "faults", "delays", "picks"}[s] }

// Tape is a source of choices. The zero value is a tape of zeros. It is not safe for concurrent
// use.
type Tape struct {
	streams [Streams]stream
	keep    bool
}

type stream struct {
	state  uint64
	drawn  bool // from state, rather than read from record
	at     int
	record []uint32
}

// Seeded returns a tape whose choices are drawn from a seed.
func Seeded(seed uint64) *Tape {
	t := &Tape{}
	t.Reset(seed)
	return t
}

// Reset restarts the tape with another seed. A tape that records continues to record.
func (t *Tape) Reset(seed uint64) {
	for i := range t.streams {
		s := &t.streams[i]
		// Mix the seed and the stream, so that neighbouring seeds and the streams of one seed
		// differ.
		*s = stream{state: mix(mix(seed) + uint64(i)*0x9e3779b97f4a7c15), drawn: true, record: s.record[:0]}
	}
}

// Record says whether the tape keeps its choices for Recorded.
func (t *Tape) Record(keep bool) { t.keep = keep }

// Of returns a tape that reads back records, one for each stream. After the end of a record every
// choice is 0. The records are not changed.
func Of(records [Streams][]uint32) *Tape {
	t := &Tape{}
	for i := range t.streams {
		t.streams[i].record = records[i]
	}
	return t
}

// Recorded returns the choices made so far by a tape that is drawn from a seed and recording. For a
// tape that reads records back, it returns the records. It leaves out zeros at the end, because
// zeros follow in any case.
func (t *Tape) Recorded() [Streams][]uint32 {
	var all [Streams][]uint32
	for i, s := range t.streams {
		end := len(s.record)
		for end > 0 && s.record[end-1] == 0 {
			end--
		}
		all[i] = append([]uint32(nil), s.record[:end]...)
	}
	return all
}

// Choose returns a number in [0, n). For n below 2 it returns 0 and uses no choice of the tape. If
// a number that was read back is too large for n, Choose returns n-1, so that a tape also fits a
// changed schedule.
func (t *Tape) Choose(which Stream, n int) int {
	if n < 2 {
		return 0
	}
	s := &t.streams[which]
	if !s.drawn {
		if s.at >= len(s.record) {
			return 0
		}
		v := min(int(s.record[s.at]), n-1)
		s.at++
		return v
	}
	s.state += 0x9e3779b97f4a7c15
	high, _ := bits.Mul64(mix(s.state), uint64(n))
	if t.keep {
		s.record = append(s.record, uint32(high))
	}
	return int(high)
}

// OneIn returns true in one of n cases on average, and never for n below 1. True is the unhealthy
// outcome.
func (t *Tape) OneIn(which Stream, n int) bool {
	return n > 0 && (n == 1 || t.Choose(which, n) == n-1)
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014). math/rand is not used, since a seed must give the same run with every Go
// release.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
