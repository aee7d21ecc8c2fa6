package search

import (
	"fmt"
	"math"
	"math/bits"
)

// sketch counts distinct values in bounded memory. It is a HyperLogLog (Flajolet, Fusy, Gandouet
// and Meunier, 2007), with linear counting for small numbers. Its standard error is
// [reports.DistinctError]. nil is empty.
type sketch []byte

const (
	sketchBits = 14
	registers  = 1 << sketchBits
)

// Add counts a value by its hash.
func (s *sketch) Add(hash uint64) {
	if len(*s) == 0 {
		*s = make(sketch, registers)
	}
	// Every output bit must depend on every input bit: this is the finaliser of SplitMix64.
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	hash ^= hash >> 31
	r := &(*s)[hash>>(64-sketchBits)]
	*r = max(*r, byte(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1)))+1)
}

// Merge adds the values that another sketch has counted.
func (s *sketch) Merge(o sketch) {
	if len(o) > 0 && len(*s) == 0 {
		*s = make(sketch, registers)
	}
	for i, r := range o {
		(*s)[i] = max((*s)[i], r)
	}
}

// Count estimates the number of distinct values.
func (s sketch) Count() uint64 {
	if len(s) == 0 {
		return 0
	}
	sum, empty := 0.0, 0
	for _, r := range s {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			empty++
		}
	}
	const m = float64(registers)
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty))
	}
	return uint64(math.Round(estimate))
}

// bytes returns the sketch for a document; never nil.
func (s sketch) bytes() []byte { return append([]byte{}, s...) }

// check refuses a sketch that no search can have made.
func (s sketch) check() error {
	if n := len(s); n != 0 && n != registers {
		return fmt.Errorf("a sketch of distinct traces has %d registers, want %d", n, registers)
	}
	for i, r := range s {
		if r > 64-sketchBits+1 {
			return fmt.Errorf("register %d of a sketch of distinct traces is %d: the file was altered", i, r)
		}
	}
	return nil
}
