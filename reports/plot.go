package reports

import (
	"fmt"
	"math"
	"strings"
)

// These are the sizes of a plot, in the units of its viewBox.
const (
	plotWidth  = 560.0
	plotHeight = 240.0
	plotLeft   = 64.0
	plotRight  = 528.0
	plotTop    = 14.0
	plotBottom = 196.0
)

// plot is the layout of a line plot. The template only writes the layout out.
type plot struct {
	ID, Title, Across       string // Across is what the axis from left to right counts
	Width, Height           float64
	Left, Right, Top, Floor float64
	XTicks, YTicks          []tick // of YTicks, X is the height
	Lines                   []plotLine
	Marks                   []plotMark
}

// plotLine is a line as SVG path data. Class is one of the style sheet.
type plotLine struct{ Class, Name, Path string }

// plotMark is a point that leads to Href.
type plotMark struct {
	X, Y              float64
	Href, Class, Name string
}

// series are the points of a line: the X axis counts schedules.
type series struct {
	class, name string
	points      []point
	steps       bool // the value stays until the next point
}

type point struct{ x, y float64 }

// axis maps values to lengths. A logarithmic axis begins at 1.
type axis struct {
	low, high float64 // the ends of the axis as lengths
	most      float64
	log       bool
}

func (a axis) at(v float64) float64 {
	part := v / a.most
	if a.log {
		part = math.Log10(math.Max(v, 1)) / math.Log10(a.most)
	}
	return round(a.low + part*(a.high-a.low))
}

// ticks are at the powers of ten of a logarithmic axis, and at round values of another.
func (a axis) ticks() (ticks []tick) {
	if a.log {
		for v := 1.0; v <= a.most; v *= 10 {
			ticks = append(ticks, tick{a.at(v), grouped(int(v))})
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(a.most)))
	for _, part := range []float64{5, 2} {
		if a.most/step < 4 && step*part/10 >= 1 {
			step *= part / 10
			break
		}
	}
	for v := 0.0; v <= a.most; v += step {
		ticks = append(ticks, tick{a.at(v), grouped(int(v))})
	}
	return ticks
}

// newPlot lays out the series. Both axes begin at the least value, and end with the largest.
func newPlot(id, title, across string, log bool, all ...series) (plot, axis, axis) {
	p := plot{
		ID: id, Title: title, Across: across, Width: plotWidth, Height: plotHeight, Left: plotLeft, Right: plotRight, Top: plotTop,
		Floor: plotBottom,
	}
	x, y := axis{low: plotLeft, high: plotRight, most: 10, log: log}, axis{low: plotBottom, high: plotTop, most: 1}
	for _, s := range all {
		for _, at := range s.points {
			x.most, y.most = math.Max(x.most, at.x), math.Max(y.most, at.y)
		}
	}
	for _, s := range all {
		var path strings.Builder
		for i, at := range s.points {
			switch {
			case i == 0:
				fmt.Fprintf(&path, "M%g %g", x.at(at.x), y.at(at.y))
			case s.steps:
				fmt.Fprintf(&path, "H%gV%g", x.at(at.x), y.at(at.y))
			default:
				fmt.Fprintf(&path, "L%g %g", x.at(at.x), y.at(at.y))
			}
		}
		p.Lines = append(p.Lines, plotLine{s.class, s.name, path.String()})
	}
	p.XTicks, p.YTicks = x.ticks(), y.ticks()
	return p, x, y
}
