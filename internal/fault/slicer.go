package fault

import (
	"errors"
	"fmt"
	"time"
)

// Slicer forwards data in slices of about Size bytes, with a pause of Delay after each. Without a
// Delay the kernel may join the slices. It acts at once on open connections; healing releases the
// rest of a chunk at once.
const Slicer Kind = "slicer"

var slicer = kind{
	takes: []string{"size", "variation", "delay"},
	check: func(f Fault) error {
		err := errors.Join(required("size", f.Size), whole("delay", f.Delay, time.Microsecond))
		// toxiproxy halves a chunk until it is no larger than size+variation. With a variation of
		// size or more the recursion may not end.
		if f.Size > 0 && f.Variation >= f.Size {
			err = errors.Join(err, fmt.Errorf(`parameter "variation" (%d) is not less than "size" (%d)`, f.Variation, f.Size))
		}
		// toxiproxy adds the two: their sum must fit.
		if f.Size > maxSlice {
			err = errors.Join(err, fmt.Errorf(`parameter "size" is %d: data comes in chunks of at most %d bytes`, f.Size, maxSlice))
		}
		return err
	},
	sentence: func(f Fault) string {
		s := fmt.Sprintf("%d B", f.Size)
		if f.Variation > 0 {
			s += fmt.Sprintf(" ±%d B", f.Variation)
		}
		if f.Delay > 0 {
			s += fmt.Sprintf(" every %s", f.Delay)
		}
		return s
	},
	toxic: func(f Fault) Toxic {
		return Toxic{"slicer", map[string]int64{
			"average_size": f.Size, "size_variation": f.Variation, "delay": f.Delay.Microseconds(),
		}}
	},
	Effect: Effect{Affects: WhatSends},
}

// maxSlice is the largest slice that can have an effect, because toxiproxy reads no larger chunk.
const maxSlice = 32 << 10
