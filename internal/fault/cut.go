package fault

// Cut takes a link away: open connections are reset at both ends, and new ones are accepted by the
// kernel and then reset (the switch listens for all sources, so it cannot refuse one SYN). It is
// toxiproxy's "disabled" state. Cuts of one link may overlap: the link comes back when the last is
// healed. a→b and b→a are different links; a partition is two cuts.
const Cut Kind = "cut"

var cut = kind{blocks: true, Effect: Effect{Disables: true, Affects: WhatBreaks}}
