package fault

import "time"

// Timeout is a black hole: data is swallowed, and so is the end of the stream. Open connections hang, and new ones are
// opened and hang. With After they are reset when they have been in the hole for that long; without it they never end on
// their own. Swallowed data does not come back: healing resets the connections that lost some, while those that sent
// nothing live on.
//
// It blocks whatever its direction: without requests there are no responses. (With direction up a response that was already
// under way still arrives.)
const Timeout Kind = "timeout"

// TimeoutToxic is the type of its toxic.
const TimeoutToxic = "timeout"

var timeout = kind{
	takes:    []string{"after"},
	check:    func(f Fault) error { return whole("after", f.After, time.Millisecond) },
	sentence: func(f Fault) string { return f.afterwards("(black hole)") },
	toxic:    func(f Fault) Toxic { return Toxic{TimeoutToxic, map[string]int64{"timeout": f.After.Milliseconds()}} },
	blocks:   true,
	Effect:   Effect{Breaks: true, Swallows: true, Affects: WhatSends},
}
