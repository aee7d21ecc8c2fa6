package reports

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// scale maps instants of the run to the width of the chart.
type scale struct{ end Seconds }

func newScale(end Seconds) scale { return scale{max(end, 0.001)} }

func (s scale) x(at Seconds) float64 {
	return round(chartLeft + float64(min(max(at, 0), s.end)/s.end)*(chartRight-chartLeft))
}

// ticks are at most ten round instants.
func (s scale) ticks() []tick {
	step := Seconds(0.001)
	for n := 0; s.end/step > 10; n++ {
		step *= []Seconds{2, 2.5, 2}[n%3]
	}
	var out []tick
	for n := range 11 {
		if at := Seconds(n) * step; at <= s.end {
			out = append(out, tick{s.x(at), strconv.FormatFloat(float64(at), 'g', 6, 64) + " s"})
		}
	}
	return out
}

func (s scale) width(start, end Seconds) float64 { return max(1, round(s.x(end)-s.x(start))) }

// round keeps the page small: a tenth of a unit is less than a pixel.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// textWidth estimates the width of a label.
func textWidth(s string) float64 { return float64(utf8.RuneCountInString(s)) * charWidth }
