package reports

import "testing"

func TestTimesAreReadAtAGlance(t *testing.T) {
	for _, c := range []struct {
		at                     Seconds
		clock, moment, lasting string
	}{
		{0, "0.0 s", "0.000 s", "0.0 ms"},
		{0.0014, "0.0 s", "0.001 s", "1.4 ms"},
		{12.3456, "12.3 s", "12.346 s", "12.3 s"},
		{59.94, "59.9 s", "59.940 s", "59.9 s"},
		{59.96, "1m00s", "59.960 s", "1m"},
		{250.2504, "4m10s", "4m10.250s", "4m10s"},
		{600, "10m00s", "10m00.000s", "10m"},
		{3599.6, "1h00m00s", "59m59.600s", "1h"},
		{14292, "3h58m12s", "3h58m12.000s", "3h58m"},
		{14399, "3h59m59s", "3h59m59.000s", "4h"},
	} {
		if got := clock(c.at); got != c.clock {
			t.Errorf("clock(%v) is %q, want %q", c.at, got, c.clock)
		}
		if got := moment(c.at); got != c.moment {
			t.Errorf("moment(%v) is %q, want %q", c.at, got, c.moment)
		}
		if got := lasting(c.at); got != c.lasting {
			t.Errorf("lasting(%v) is %q, want %q", c.at, got, c.lasting)
		}
	}
}
