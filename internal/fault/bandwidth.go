package fault

import (
	"errors"
	"fmt"
)

// Bandwidth limits each stream of each connection to Rate. toxiproxy counts in units of 1000 bytes
// per second and releases data in steps of 100 ms. It acts at once on open connections; healing
// releases held data at once. Heal it before a latency in front of it on the same stream. Such a
// latency heals only as fast as the rate drains the data that it holds, and toxiproxy drops a chunk
// after 5 s.
const Bandwidth Kind = "bandwidth"

const bandwidthUnit = 1000

var bandwidth = kind{
	takes: []string{"rate"},
	check: func(f Fault) error {
		err := required("rate", f.Rate)
		if f.Rate%bandwidthUnit != 0 {
			err = errors.Join(err, fmt.Errorf(`parameter "rate" is %d bytes per second: toxiproxy counts in whole units of %d`,
				f.Rate, bandwidthUnit))
		}
		return err
	},
	sentence: func(f Fault) string { return fmt.Sprintf("%d kB/s", f.Rate/bandwidthUnit) },
	toxic: func(f Fault) Toxic {
		return Toxic{"bandwidth", map[string]int64{"rate": f.Rate / bandwidthUnit}}
	},
	Effect: Effect{Affects: WhatSends},
}
