package reports

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// laneView is one server's lane. From top to bottom it has states, violations and outcomes. Fault
// bands are behind them.
type laneView struct {
	Server         string
	BandMid, BarsY float64 // the middle of the states, and the lower edge of the bars
	Behind         []rect  // fault bands
	States         []stateView
	Late           []rect
	Marks          []markView
	Bars           []bar
	Rows           []rowView
}

// stateView is a time in one state. Its colour is that of the version. It is hatched unless the
// server was ready.
type stateView struct {
	rect
	Hatch      bool
	Label      string
	MidX, MidY float64
}

// bar shows the outcomes of one bucket, stacked.
type bar struct {
	From  Seconds
	Title string
	Parts []rect
}

// markView shows where violations of one kind were seen.
type markView struct {
	rect
	Href   string
	Points string // a triangle at the first violation
}

func newLane(r RunReport, of cardOf, l Lane, s scale, top float64, versions []versionKey, peak int) laneView {
	v := laneView{Server: l.Server, BandMid: top + bandHeight/2, BarsY: top + bandHeight + marksHeight + barsHeight}
	own := slices.DeleteFunc(slices.Clone(r.Faults), func(f Fault) bool { return !f.concerns(l.Server) })
	for _, f := range own {
		x, w := s.x(f.StartSeconds), s.width(f.StartSeconds, f.EndSeconds)
		v.Behind = joinedTo(v.Behind, len(own), rect{X: x, Y: top - 5, W: w, H: l.height() + 10, Class: "fault", Title: f.event(0).title})
	}
	for _, b := range l.States {
		v.States = joinedState(v.States, len(l.States), newState(b, s, top, versions))
	}
	for _, b := range l.Late {
		v.Late = joinedTo(v.Late, len(l.Late), newLate(b, s, top+bandHeight-4))
	}
	v.Marks = newMarks(r, of, l.Server, s, top+bandHeight+2)
	for _, b := range l.Buckets {
		v.Bars = append(v.Bars, newBar(b, s, r.Timeline.BucketSeconds, v.BarsY, peak))
	}
	y := v.BarsY + rowsGap
	for _, row := range l.Rows {
		v.Rows = append(v.Rows, newRow(l.Server, row, s, r.Timeline.BucketSeconds, y))
		y += classRowHeight
	}
	return v
}

// mostSpans is how many spans of one kind a lane draws one by one. If there are more, it joins
// spans that are narrow and close together.
const mostSpans = 100

// joinedTo appends a rectangle, or widens the last one if there are many of them and both lie
// within a few pixels.
func joinedTo(all []rect, of int, next rect) []rect {
	n := len(all) - 1
	if of <= mostSpans || n < 0 || next.X > all[n].X+all[n].W+2 && next.X > all[n].X+chartWidth/mostSpans {
		return append(all, next)
	}
	all[n].W = max(all[n].W, round(next.X+next.W-all[n].X))
	all[n].Title = "several, the last: " + next.Title
	return all
}

// joinedState does the same for the states of a process.
func joinedState(all []stateView, of int, next stateView) []stateView {
	n := len(all) - 1
	if of <= mostSpans || n < 0 || next.W > chartWidth/mostSpans || all[n].W > chartWidth/mostSpans {
		return append(all, next)
	}
	all[n].W = max(all[n].W, round(next.X+next.W-all[n].X))
	all[n].Title, all[n].Label, all[n].Class, all[n].Hatch = "several states, the last: "+next.Title, "", "down", true
	return all
}

// rowsGap is the distance between the bars and the rows.
const rowsGap = 5

// height is the height of the lane in the chart.
func (l Lane) height() float64 {
	h := bandHeight + marksHeight + barsHeight
	if len(l.Rows) > 0 {
		h += rowsGap + classRowHeight*float64(len(l.Rows))
	}
	return h
}

func newState(b StateBand, s scale, top float64, versions []versionKey) stateView {
	x, w := s.x(b.StartSeconds), s.width(b.StartSeconds, b.EndSeconds)
	v := stateView{rect: rect{X: x, Y: top, W: w, H: bandHeight}, MidX: round(x + w/2), MidY: top + bandHeight/2}
	name := string(b.State)
	switch b.State {
	case history.StateReady:
		v.Class, v.Label = versionClass(versions, b.Version), b.Version
	case history.StateStarting, history.StateStopping, history.StateDrained, history.StatePaused:
		v.Class, v.Hatch, v.Label = versionClass(versions, b.Version), true, name
	case history.StateCrashed:
		v.Class, v.Hatch, v.Label = "crashed", true, name
	default:
		v.Class, v.Hatch, v.Label = "down", true, name
	}
	if textWidth(v.Label)+6 > w {
		v.Label = ""
	}
	v.Title = fmt.Sprintf("%s %s, %s to %s", b.Version, name, clock(b.StartSeconds), clock(b.EndSeconds))
	if b.Detail != "" {
		v.Title += ": " + b.Detail
	}
	return v
}

func newLate(b LateBand, s scale, y float64) rect {
	title := fmt.Sprintf("a probe that avoids all faults was answered late, %s to %s", clock(b.StartSeconds), clock(b.EndSeconds))
	if b.QueuedSeconds > 0 {
		title += fmt.Sprintf("; the server's threads waited %s for a CPU, all together", lasting(b.QueuedSeconds))
	}
	return rect{X: s.x(b.StartSeconds), Y: y, W: s.width(b.StartSeconds, b.EndSeconds), H: 4, Class: "late", Title: title}
}

// newMarks draws one mark for each card that the lane of a server belongs to. The mark leads to the
// card.
func newMarks(r RunReport, of cardOf, server string, s scale, y float64) []markView {
	type joined struct {
		first, last Seconds
		names       []string
		decides     bool
	}
	var all []joined
	var links []string
	for _, i := range r.Invariants {
		for n, e := range i.Evidence {
			if !slices.Contains(e.servers(), server) {
				continue
			}
			link := of.link(i.Name, n)
			at := slices.Index(links, link)
			if at < 0 {
				at = len(all)
				links, all = append(links, link), append(all, joined{first: e.FirstSeconds})
			}
			j := &all[at]
			j.first, j.last = min(j.first, e.FirstSeconds), max(j.last, e.LastSeconds)
			j.names = appendNew(j.names, i.Name)
			j.decides = j.decides || r.Decides(i)
		}
	}
	var out []markView
	for n, j := range all {
		x, w := s.x(j.first), s.width(j.first, j.last)
		v := markView{
			rect: rect{X: x, Y: y + 3, W: w, H: 3, Class: "mark", Title: fmt.Sprintf("%s violated, %s to %s",
				conjunction(j.names), clock(j.first), clock(j.last))},
			Href:   links[n],
			Points: fmt.Sprintf("%g,%g %g,%g %g,%g", round(x-4), y, round(x+4), y, x, y+8),
		}
		if !j.decides {
			v.Class = "mark extended"
		}
		out = append(out, v)
	}
	return out
}

// newBar stacks the outcomes of one bucket. The kinds that a reviewer looks for are at the bottom,
// where buckets can be compared. Each kind is at least two units high, so that one 404 among sixty
// successes stays visible.
func newBar(b Bucket, s scale, width Seconds, base float64, peak int) bar {
	x, w := s.x(b.StartSeconds), s.width(b.StartSeconds, b.StartSeconds+width)
	out := bar{From: b.StartSeconds}
	y := base
	for _, k := range b.kinds() {
		if k.count == 0 {
			continue
		}
		h := max(2, float64(k.count)/float64(peak)*(barsHeight-4))
		h = round(min(h, max(0, y-(base-barsHeight))))
		y = round(y - h)
		out.Parts = append(out.Parts, rect{X: x, Y: y, W: max(0.5, round(w-0.6)), H: h, Class: k.class})
	}
	out.Title = fmt.Sprintf("%s to %s: %s", clock(b.StartSeconds), clock(b.StartSeconds+width), b.inWords())
	return out
}
