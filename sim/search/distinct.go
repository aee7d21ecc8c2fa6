package search

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/bits"
)

// Distinct counts different things in bounded memory: a HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007), with linear counting where
// there are few. Those of two searches can be put together. The zero value has counted nothing. It is not safe for concurrent use.
type Distinct struct {
	registers []byte
}

// How exact a [Distinct] is: its standard error is 1.04/√registers.
const (
	distinctBits = 14
	registers    = 1 << distinctBits
	// DistinctError is the standard error of Count, as a part of it.
	DistinctError = 1.04 / 128
)

// Add counts something by its hash.
func (d *Distinct) Add(hash uint64) {
	if d.registers == nil {
		d.registers = make([]byte, registers)
	}
	// Every bit must depend on every bit: this is the finaliser of SplitMix64.
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	hash ^= hash >> 31
	r := &d.registers[hash>>(64-distinctBits)]
	*r = max(*r, byte(bits.LeadingZeros64(hash<<distinctBits|1<<(distinctBits-1)))+1)
}

// Merge counts what another has counted as well.
func (d *Distinct) Merge(o *Distinct) {
	if o.registers == nil {
		return
	}
	if d.registers == nil {
		d.registers = make([]byte, registers)
	}
	for i, r := range o.registers {
		d.registers[i] = max(d.registers[i], r)
	}
}

// Count estimates how many different things were added.
func (d *Distinct) Count() uint64 {
	if d.registers == nil {
		return 0
	}
	sum, empty := 0.0, 0
	for _, r := range d.registers {
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

// MarshalText writes it down so that it can be merged later.
func (d Distinct) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString(d.registers)), nil
}

// UnmarshalText reads it back.
func (d *Distinct) UnmarshalText(text []byte) error {
	read, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("a count of distinct things is not base64: %w", err)
	}
	switch len(read) {
	case 0:
		d.registers = nil
	case registers:
		d.registers = read
	default:
		return fmt.Errorf("a count of distinct things has %d registers, want %d", len(read), registers)
	}
	for i, r := range d.registers {
		if r > 64-distinctBits+1 {
			return fmt.Errorf("register %d of a count of distinct things is %d: the file was altered", i, r)
		}
	}
	return nil
}
