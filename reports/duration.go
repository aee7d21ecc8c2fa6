package reports

import (
	"fmt"
	"math"
	"strconv"
)

// clock writes an instant of the run: "12.3 s", "4m10s", "3h58m12s".
func clock(s Seconds) string {
	if s < 59.95 {
		return strconv.FormatFloat(float64(s), 'f', 1, 64) + " s"
	}
	whole := int64(math.Round(float64(s)))
	if whole < 3600 {
		return fmt.Sprintf("%dm%02ds", whole/60, whole%60)
	}
	return fmt.Sprintf("%dh%02dm%02ds", whole/3600, whole/60%60, whole%60)
}

// moment writes an instant to the millisecond, for instants that lie close together: "12.345 s",
// "4m10.250s".
func moment(s Seconds) string {
	milliseconds := int64(math.Round(float64(s) * 1000))
	if milliseconds < 60_000 {
		return strconv.FormatFloat(float64(milliseconds)/1000, 'f', 3, 64) + " s"
	}
	minutes, rest := milliseconds/60_000, float64(milliseconds%60_000)/1000
	if minutes < 60 {
		return fmt.Sprintf("%dm%06.3fs", minutes, rest)
	}
	return fmt.Sprintf("%dh%02dm%06.3fs", minutes/60, minutes%60, rest)
}

// lasting writes a duration in the unit that is easiest to read: "1.4 ms", "23.0 s", "4m10s",
// "3h58m". It leaves out what is less than a hundredth.
func lasting(s Seconds) string {
	switch whole := int64(math.Round(float64(s))); {
	case s < 1:
		return strconv.FormatFloat(float64(s)*1000, 'f', 1, 64) + " ms"
	case s < 59.95:
		return clock(s)
	case whole%60 == 0 && whole < 3600:
		return fmt.Sprintf("%dm", whole/60)
	case whole < 3600:
		return clock(s)
	case (whole+30)/60%60 == 0:
		return fmt.Sprintf("%dh", (whole+30)/3600)
	default:
		return fmt.Sprintf("%dh%02dm", (whole+30)/3600, (whole+30)/60%60)
	}
}
