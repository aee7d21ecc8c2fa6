package fault

import "time"

// Timeout is a black hole: it swallows data and the end of the stream. Open and new connections
// hang. With After they are reset when one of the streams on which the fault acts has carried
// nothing for this time, and without it they hang for ever. As in toxiproxy, each chunk starts the
// time anew: on a link with traffic or pings, a stream that carries requests does not end. With
// both directions, the stream of the answers is silent, and ends that long after its last data.
// Swallowed data does not come back, so healing resets the connections that lost data. Other
// connections continue.
//
// It blocks requests in any direction: without requests there are no responses. (With direction up,
// a response that is already on its way still arrives.)
const Timeout Kind = "timeout"

// TimeoutToxic is the type of the toxic of Timeout.
const TimeoutToxic = "timeout"

var timeout = kind{
	takes:    []string{"after"},
	check:    func(f Fault) error { return whole("after", f.After, time.Millisecond) },
	sentence: func(f Fault) string { return f.afterwards("(black hole)") },
	toxic:    func(f Fault) Toxic { return Toxic{TimeoutToxic, map[string]int64{"timeout": f.After.Milliseconds()}} },
	blocks:   true,
	Effect:   Effect{Breaks: true, Swallows: true, Affects: WhatSends},
}
