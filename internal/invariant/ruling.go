package invariant

// ruling is what an invariant says of one observation.
type ruling uint8

const (
	rulingNone      ruling = iota // not its business
	rulingRight                   // as it must be
	rulingWrong                   // a violation
	rulingTolerated               // would be a violation, but knowledge is still allowed to spread
	rulingEarly                   // as it must be, before that could be demanded
	rulingUnknown                 // its business, but the ground truth is missing or contradicts itself
)
