package reports

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/semver"
)

// These are the sizes of the chart, in the units of its viewBox.
const (
	chartWidth  = 1160.0
	chartLeft   = 92.0 // the labels of the lanes are left of this
	chartRight  = 1144.0
	rowHeight   = 22.0 // one row of steps or faults
	bandHeight  = 22.0 // the states of a server
	marksHeight = 12.0 // the violations on it
	barsHeight  = 58.0 // the outcomes on it
	laneGap     = 20.0
	mostLanes   = 40
	axisHeight  = 30.0
	charWidth   = 6.4 // of the 11.5 px labels, a generous estimate
)

// chart is the layout of the timeline. The template only writes the layout out.
type chart struct {
	End                 Seconds // the end of the time axis
	Width, Height       float64
	Left, Right, Bottom float64
	Ticks               []tick
	StepsTop, FaultsTop float64
	Steps, Faults       []span
	Lanes               []laneView
	Versions            []versionKey
	Peak                int // the number of requests in the fullest bucket; it sets the height of the bars
	Bucket              Seconds
	LanesOmitted        int  // the servers for which there is no lane
	AnyLate             bool // a server answered a probe of the run late
}

type tick struct {
	X     float64
	Label string
}

// rect is a rectangle with a class of the style sheet and a tooltip.
type rect struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

func newChart(r RunReport) chart {
	c := chart{Width: chartWidth, Left: chartLeft, Right: chartRight, Bucket: r.Timeline.BucketSeconds}
	scale := newScale(r.Timeline.EndSeconds)
	c.End = scale.end
	c.Ticks = scale.ticks()
	y := 26.0
	c.StepsTop = y
	c.Steps, y = spansOf(r.Steps, Step.event, "step", scale, y)
	c.FaultsTop = y
	c.Faults, y = spansOf(r.Faults, Fault.event, "fault-bar", scale, y)
	y += 8
	versions := versionClasses(r)
	c.Versions = versions
	for _, l := range r.Timeline.Lanes {
		c.AnyLate = c.AnyLate || len(l.Late) > 0
		for _, b := range l.Buckets {
			c.Peak = max(c.Peak, b.Total())
		}
	}
	of := newCardOf(r)
	for _, l := range r.Timeline.Lanes[:min(len(r.Timeline.Lanes), mostLanes)] {
		c.Lanes = append(c.Lanes, newLane(r, of, l, scale, y, versions, c.Peak))
		y += l.height() + laneGap
	}
	c.LanesOmitted = len(r.Timeline.Lanes) - len(c.Lanes)
	c.Bottom = y - laneGap + 6
	c.Height = c.Bottom + axisHeight
	return c
}

// versionKey is a version and the class of the style sheet that gives it its colour.
type versionKey struct{ Class, Version string }

// versionClasses gives each version its colour, oldest first.
func versionClasses(r RunReport) []versionKey {
	var out []versionKey
	for _, l := range r.Timeline.Lanes {
		for _, b := range l.States {
			if b.Version != "" && !slices.ContainsFunc(out, func(k versionKey) bool { return k.Version == b.Version }) {
				out = append(out, versionKey{Version: b.Version})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b versionKey) int { return semver.Compare(a.Version, b.Version) })
	for n := range out {
		out[n].Class = fmt.Sprintf("v%d", n%5)
	}
	return out
}

func versionClass(versions []versionKey, version string) string {
	for _, k := range versions {
		if k.Version == version {
			return k.Class
		}
	}
	return "down"
}

// scale maps instants of the run to the width of the chart.
type scale struct{ end Seconds }

func newScale(end Seconds) scale { return scale{max(end, 0.001)} }

func (s scale) x(at Seconds) float64 {
	return round(chartLeft + float64(min(max(at, 0), s.end)/s.end)*(chartRight-chartLeft))
}

// roundSteps are distances between ticks that people count in.
var roundSteps = []Seconds{
	0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 2 * 3600, 4 * 3600,
	6 * 3600, 12 * 3600,
}

// ticks returns at most eleven round instants.
func (s scale) ticks() []tick {
	step := roundSteps[len(roundSteps)-1]
	if n := slices.IndexFunc(roundSteps, func(step Seconds) bool { return s.end/step <= 10 }); n >= 0 {
		step = roundSteps[n]
	}
	for s.end/step > 10 {
		step *= 2
	}
	var out []tick
	for n := range 11 {
		if at := Seconds(n) * step; at <= s.end {
			out = append(out, tick{s.x(at), tickLabel(at)})
		}
	}
	return out
}

// tickLabel writes a round instant without needless zeros: "0", "2.5 s", "4m", "1h30m".
func tickLabel(at Seconds) string {
	if at < 60 {
		return strconv.FormatFloat(float64(at), 'g', 6, 64) + " s"
	}
	return lasting(at)
}

func (s scale) width(start, end Seconds) float64 { return max(1, round(s.x(end)-s.x(start))) }

// round rounds a length, to keep the page small. A tenth of a unit is less than a pixel.
func round(x float64) float64 { return math.Round(x*10) / 10 }

// textWidth estimates the width of a label.
func textWidth(s string) float64 { return float64(utf8.RuneCountInString(s)) * charWidth }

// span is a labelled time in a row of its own.
type span struct {
	rect
	Label          string
	LabelX, LabelY float64
	at             Seconds
	together       int  // the number of events that share the tick
	Before         bool // the label is before the span, because there is no room behind it
}

// event is a step or a fault of the chart. class is empty, or a class besides that of its kind.
type event struct {
	start, end          Seconds
	label, title, class string
}

// spansOf places steps or faults in as few rows as their labels allow. It returns where the next
// row begins. If there are many, it draws them as ticks in one row; those that begin within a pixel
// or two share a tick.
func spansOf[T any](all []T, of func(one T, n int) event, class string, s scale, top float64) (out []span, bottom float64) {
	var rows rows
	for n, one := range all {
		e := of(one, n)
		if len(all) <= mostLabelled {
			v := newSpan(s, e.start, e.end, e.label)
			v.Class, v.Title = strings.TrimSuffix(class+" "+e.class, " "), e.title
			rows.place(&v, top)
			out = append(out, v)
			continue
		}
		x := s.x(e.start)
		if last := len(out) - 1; last >= 0 && x-out[last].X < 3 {
			out[last].together++
			out[last].Title = fmt.Sprintf("%d events from %s on, the last: %s", out[last].together, clock(out[last].at), e.title)
			continue
		}
		out = append(out, span{
			rect: rect{X: x, Y: top + 5, W: min(max(2, s.width(e.start, e.end)), 3), H: rowHeight - 10, Class: class, Title: e.title},
			at:   e.start, together: 1,
		})
	}
	if len(all) > mostLabelled {
		return out, top + rowHeight
	}
	return out, top + float64(len(rows))*rowHeight
}

// mostLabelled is how many steps or faults have labels and rows. More of them are ticks in one row.
const mostLabelled = 14

func (s Step) event(n int) event {
	e := event{start: s.StartSeconds, end: s.EndSeconds, label: fmt.Sprintf("%d %s", n+1, s.Sentence),
		title: fmt.Sprintf("step %d: %s, %s to %s", n+1, s.Sentence, clock(s.StartSeconds), clock(s.EndSeconds))}
	if s.Error != "" {
		e.class = "failed"
	}
	return e
}

func (f Fault) event(int) event {
	e := event{start: f.StartSeconds, end: f.EndSeconds, label: f.Kind + " " + f.Target(),
		title: fmt.Sprintf("fault %d: %s %s, %s to %s", f.ID, f.Kind, f.Target(), clock(f.StartSeconds), clock(f.EndSeconds))}
	if f.Detail != "" {
		e.title += ", " + f.Detail
	}
	if !f.Evidence.Effective {
		e.class, e.title = "no-effect", e.title+"; it had no effect"
	}
	return e
}

// newSpan puts the label behind the span, or before the span if it does not fit behind.
func newSpan(s scale, start, end Seconds, label string) span {
	const longest = 60
	if r := []rune(label); len(r) > longest {
		label = string(r[:longest-1]) + "…"
	}
	v := span{rect: rect{X: s.x(start), W: max(3, s.width(start, end)), H: rowHeight - 14}, Label: label}
	v.LabelX = round(v.X + v.W + 5)
	if v.LabelX+textWidth(label) > chartRight && v.X-textWidth(label) > chartLeft {
		v.LabelX, v.Before = v.X-5, true
	}
	return v
}

// extent is the range that the span and its label use.
func (v span) extent() (from, to float64) {
	if v.Before {
		return v.LabelX - textWidth(v.Label), v.X + v.W
	}
	return v.X, v.LabelX + textWidth(v.Label)
}

// rows holds the ranges that are occupied in each row.
type rows [][][2]float64

// place puts v into the first row with room for it.
func (r *rows) place(v *span, top float64) {
	const gap = 12
	from, to := v.extent()
	n := 0
	for ; n < len(*r); n++ {
		free := true
		for _, taken := range (*r)[n] {
			free = free && (to+gap < taken[0] || from > taken[1]+gap)
		}
		if free {
			break
		}
	}
	if n == len(*r) {
		*r = append(*r, nil)
	}
	(*r)[n] = append((*r)[n], [2]float64{from, to})
	v.Y = top + float64(n)*rowHeight + 7
	v.LabelY = v.Y + (rowHeight-14)/2
}
