package fault

import (
	"errors"
	"time"
)

// SlowClose holds back the end of a stream by Delay, also on open connections, and lets data pass.
// A FIN arrives as a FIN, a reset as a reset. Healing releases the end at once.
const SlowClose Kind = "slow-close"

var slowClose = kind{
	takes: []string{"delay"},
	check: func(f Fault) error {
		return errors.Join(required("delay", f.Delay), whole("delay", f.Delay, time.Millisecond))
	},
	sentence: func(f Fault) string { return f.Delay.String() },
	toxic:    func(f Fault) Toxic { return Toxic{"slow_close", map[string]int64{"delay": f.Delay.Milliseconds()}} },
	Effect:   Effect{Affects: WhatEnds},
}
