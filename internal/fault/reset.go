package fault

import "time"

// Reset resets a connection (RST at both ends) After the first data in its direction, which is lost
// with all behind it: no response gets through. Open connections are reset at their next data.
// Those that are idle, or end in order, are left alone.
const Reset Kind = "reset"

// ResetToxic is the type of its toxic.
const ResetToxic = "reset_peer"

var reset = kind{
	takes:    []string{"after"},
	check:    func(f Fault) error { return whole("after", f.After, time.Millisecond) },
	sentence: func(f Fault) string { return f.afterwards("") },
	toxic:    func(f Fault) Toxic { return Toxic{ResetToxic, map[string]int64{"timeout": f.After.Milliseconds()}} },
	blocks:   true,
	Effect:   Effect{Breaks: true, Affects: WhatBreaks},
}

// afterwards is "after 3s", or what a fault without After is.
func (f Fault) afterwards(without string) string {
	if f.After == 0 {
		return without
	}
	return "after " + f.After.String()
}
