package fault

import (
	"errors"
	"fmt"
	"time"
)

// Latency delays every chunk of data by Latency, varied by up to Jitter, and keeps the order. With
// both directions a round trip takes twice as long. It acts at once on open connections and counts
// from the time when data was read from the connection: behind a bandwidth or a slicer on the same
// stream it adds only what those have not used (see [Passage]). It does not lower the throughput,
// because up to 1024 chunks are delayed at once. It delays the end of a stream only behind data.
// Healing releases the held data; adding another toxic releases one chunk.
const Latency Kind = "latency"

var latency = kind{
	takes: []string{"latency", "jitter"},
	check: func(f Fault) error {
		err := errors.Join(
			required("latency", f.Latency),
			whole("latency", f.Latency, time.Millisecond),
			whole("jitter", f.Jitter, time.Millisecond))
		if f.Jitter > f.Latency {
			err = errors.Join(err, fmt.Errorf(`parameter "jitter" (%s) is more than "latency" (%s)`, f.Jitter, f.Latency))
		}
		return err
	},
	sentence: func(f Fault) string {
		if f.Jitter == 0 {
			return f.Latency.String()
		}
		return fmt.Sprintf("%s ±%s", f.Latency, f.Jitter)
	},
	toxic: func(f Fault) Toxic {
		return Toxic{"latency", map[string]int64{"latency": f.Latency.Milliseconds(), "jitter": f.Jitter.Milliseconds()}}
	},
	Effect: Effect{Affects: WhatSends},
}
