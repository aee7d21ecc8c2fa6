package fault

// Cut takes a link away: open connections are reset at both ends, and new ones are accepted by the kernel and then reset
// (the switch listens for all sources at once, so it cannot refuse the SYN of one of them). It is toxiproxy's "disabled"
// state, which lasts as long as at least one cut is active: cuts of the same link may overlap, and the link comes back when
// the last one is healed. "a cannot reach b" and "b cannot reach a" are different links; a partition is two cuts.
const Cut Kind = "cut"

var cut = kind{blocks: true, Effect: Effect{Disables: true, Affects: WhatBreaks}}
