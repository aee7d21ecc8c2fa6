package fault

// Cut takes a link away: connections that are open are reset at both ends, and new ones are accepted by the kernel and then
// reset (the switch listens for all sources at once, so it cannot refuse the SYN of one of them). It is toxiproxy's
// "disabled" state, set for as long as at least one cut is active: cuts of the same link may overlap, and the link comes
// back with the last one healed. "a cannot reach b" and "b cannot reach a" are different links; a partition is two cuts.
const Cut Kind = "cut"

var cut = kind{disables: true, blocks: true, bites: bitesLife}
