package fault

import (
	"errors"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// SlowClose holds back the end of a stream by Delay, and lets data pass. It acts on connections that end while it is on, whether
// they were opened before or after; a FIN arrives as a FIN, a reset as a reset. Healing lets the end out at once.
const SlowClose Kind = "slow-close"

var slowClose = kind{
	takes: []string{"delay"},
	check: func(f Fault) error {
		return errors.Join(required("delay", f.Delay), whole("delay", f.Delay, time.Millisecond))
	},
	sentence: func(f Fault) string { return f.Delay.String() },
	toxic: func(f Fault) (string, toxics.Toxic) {
		return "slow_close", &toxics.SlowCloseToxic{Delay: f.Delay.Milliseconds()}
	},
	bites: bitesEnd,
}
