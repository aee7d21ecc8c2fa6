package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
)

// samples reports whether a mutant is in the sample. Whether it is depends on the mutant and on the
// number of mutants in the package only. So a sample is spread over the package, and the next run
// tests the same mutants, except where the package has changed.
func (s state) samples(m mutant) bool {
	all := len(s.Switched.Numbers)
	if s.Sample == 0 || s.Sample >= all {
		return true
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%#v", m)
	return float64(mixed(hash.Sum64()))/math.MaxUint64 < float64(s.Sample)/float64(all)
}

// mixed spreads similar numbers: FNV's high bits hardly depend on the last bytes (the finalizer of
// MurmurHash3).
func mixed(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// leaveOut notes that a mutant was left out: one byte for each. Several processes do so at a time.
func leaveOut(stateFile string) error {
	file, err := os.OpenFile(stateFile+".left-out", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(".")
	return errors.Join(err, file.Close())
}

// leftOut returns how many mutants were left out.
func leftOut(stateFile string) (int, error) {
	info, err := os.Stat(stateFile + ".left-out")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}
