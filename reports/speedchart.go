package reports

import (
	"fmt"
	"math"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

const (
	speedHeight = 70.0 // the latencies of a server
	errorHeight = 18.0 // its error rate
	speedGap    = 22.0
)

// speedChart shows latency and error rate of each server over time. It has the time axis of the
// timeline.
type speedChart struct {
	End                 Seconds // the end of the time axis
	Width, Height       float64
	Left, Right, Bottom float64
	Ticks               []tick
	Panels              []speedPanel
}

type speedPanel struct {
	Server                    string
	Top, Floor, ErrorBaseline float64
	Slowest, Fastest          Seconds // the ends of the logarithmic scale
	Lines                     []speedLine
	Errors                    []rect
}

// speedLine is a line or a set of points, as SVG path data.
type speedLine struct{ Class, Title, Path string }

// newSpeedChart lays out the chart. ok is false if nothing was measured.
func newSpeedChart(r RunReport) (c speedChart, ok bool) {
	c = speedChart{Width: chartWidth, Left: chartLeft, Right: chartRight}
	s := newScale(r.Timeline.EndSeconds)
	c.End, c.Ticks = s.end, s.ticks()
	fastest, slowest := Seconds(math.Inf(1)), Seconds(0)
	for _, l := range r.Timeline.Lanes {
		for _, sp := range l.Speeds {
			fastest = min(fastest, sp.P50Seconds)
			slowest = max(slowest, sp.P99Seconds)
			for _, one := range sp.Slowest {
				slowest = max(slowest, one.Seconds)
			}
		}
	}
	if slowest <= 0 {
		return c, false
	}
	low := math.Floor(math.Log10(math.Max(float64(fastest), 1e-5)))
	high := math.Max(low+1, math.Ceil(math.Log10(float64(slowest))))
	top := 10.0
	for _, l := range r.Timeline.Lanes[:min(len(r.Timeline.Lanes), mostLanes)] {
		p := speedPanel{
			Server: l.Server, Top: top, Floor: top + speedHeight, ErrorBaseline: top + speedHeight + 4 + errorHeight,
			Slowest: Seconds(math.Pow(10, high)), Fastest: Seconds(math.Pow(10, low)),
		}
		y := func(took Seconds) float64 {
			at := (math.Log10(math.Max(float64(took), math.Pow(10, low))) - low) / (high - low)
			return round(p.Floor - at*speedHeight)
		}
		p.Lines = speedLines(l, s, r.Timeline.BucketSeconds, y)
		for _, b := range l.Buckets {
			if share := b.errorShare(); share > 0 {
				h := max(1.5, round(share*errorHeight))
				p.Errors = append(p.Errors, rect{
					X: s.x(b.StartSeconds), Y: round(p.ErrorBaseline - h), W: s.width(b.StartSeconds, b.StartSeconds+r.Timeline.BucketSeconds), H: h,
					Class: "error-share",
					Title: fmt.Sprintf("%s, %s: %.1f %% of %s failed or were wrong", l.Server, clock(b.StartSeconds), 100*share,
						counted(b.Total(), "answer")),
				})
			}
		}
		c.Panels = append(c.Panels, p)
		top = p.ErrorBaseline + speedGap
	}
	c.Bottom = top - speedGap + 4
	c.Height = c.Bottom + axisHeight
	return c, true
}

// ways are how requests are handled, with their class of the style sheet.
var ways = []struct {
	way         invariant.Way
	class, name string
}{{invariant.WayAnswered, "local", "answered by the asked server"}, {invariant.WayPassedOn, "passed", "passed on to a peer"}, {invariant.WayUnknown, "unrecorded", "not recorded"}}

// speedLines are the medians and the 99th percentiles of each way, and a point for the slowest
// request of each class.
func speedLines(l Lane, s scale, width Seconds, y func(Seconds) float64) []speedLine {
	var out []speedLine
	for _, w := range ways {
		var p50, p99 strings.Builder
		points := make([]strings.Builder, len(rowClasses))
		last := Seconds(-1)
		for _, sp := range l.Speeds {
			if sp.Way != w.way {
				continue
			}
			x, step := s.x(sp.StartSeconds+width/2), "L"
			if last < 0 || sp.StartSeconds-last > width*1.5 { // no line over a gap
				step = "M"
			}
			last = sp.StartSeconds
			fmt.Fprintf(&p50, "%s%g %g", step, x, y(sp.P50Seconds))
			fmt.Fprintf(&p99, "%s%g %g", step, x, y(sp.P99Seconds))
			for n, class := range rowClasses {
				for _, one := range sp.Slowest {
					if one.Class == class {
						fmt.Fprintf(&points[n], "M%g %gh0", x, y(one.Seconds))
					}
				}
			}
		}
		if p50.Len() == 0 {
			continue
		}
		for n := range points {
			if points[n].Len() > 0 {
				out = append(out, speedLine{fmt.Sprintf("point %s class-%d", w.class, n), "the slowest of each slice: " + rowClasses[n] + ", " + w.name,
					points[n].String()})
			}
		}
		out = append(out, speedLine{"p99 " + w.class, "p99, " + w.name, p99.String()},
			speedLine{"p50 " + w.class, "p50, " + w.name, p50.String()})
	}
	return out
}

// figureRow is one slice of time of one server, in figures.
type figureRow struct {
	Bucket
	Local, Passed Speed
}

// laneFigures are the figures of one server.
type laneFigures struct {
	Server string
	Rows   []figureRow
}

func newFigures(r RunReport) (all []laneFigures) {
	for _, l := range r.Timeline.Lanes[:min(len(r.Timeline.Lanes), mostLanes)] {
		figures := laneFigures{Server: l.Server}
		for _, b := range l.Buckets {
			row := figureRow{Bucket: b}
			for _, sp := range l.Speeds {
				switch {
				case sp.StartSeconds != b.StartSeconds:
				case sp.Way == invariant.WayPassedOn:
					row.Passed = sp
				case sp.Measured > row.Local.Measured:
					row.Local = sp
				}
			}
			figures.Rows = append(figures.Rows, row)
		}
		all = append(all, figures)
	}
	return all
}
