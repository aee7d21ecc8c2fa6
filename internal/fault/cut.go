package fault

// Cut takes a link down. It resets open connections at both ends. The kernel accepts new
// connections, and then they are reset (the switch listens for all sources, so it cannot refuse a
// single SYN). It is toxiproxy's "disabled" state. Cuts of one link may overlap: the link is up
// again when the last cut is healed. a→b and b→a are different links; a partition is two cuts.
const Cut Kind = "cut"

var cut = kind{blocks: true, Effect: Effect{Disables: true, Affects: WhatBreaks}}
