package fault

import "time"

// Reset resets a connection (RST at both ends). The reset comes the time After after the first data
// in the fault's direction. This data and all data behind it is lost, so no response gets through.
// Open connections are reset after their next data. The fault does not affect connections that are
// idle or end in order.
const Reset Kind = "reset"

// ResetToxic is the type of the toxic of Reset.
const ResetToxic = "reset_peer"

var reset = kind{
	takes:    []string{"after"},
	check:    func(f Fault) error { return whole("after", f.After, time.Millisecond) },
	sentence: func(f Fault) string { return f.afterwards("") },
	toxic:    func(f Fault) Toxic { return Toxic{ResetToxic, map[string]int64{"timeout": f.After.Milliseconds()}} },
	blocks:   true,
	Effect:   Effect{Breaks: true, Affects: WhatBreaks},
}

// afterwards returns "after 3s", or the given text if the fault has no After.
func (f Fault) afterwards(without string) string {
	if f.After == 0 {
		return without
	}
	return "after " + f.After.String()
}
