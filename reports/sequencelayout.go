package reports

import (
	"fmt"
	"strings"
)

// seqLayout are the measures of a picture of a sequence, in pixels. Every picture is drawn twice,
// because a small screen cannot show the letters of a wide picture.
type seqLayout struct {
	id      string
	axis    float64 // the width of the times
	spacing float64 // between two lanes
	margin  float64 // right of the last lane
}

var (
	seqWide   = seqLayout{id: "wide", axis: 92, spacing: 220, margin: 112}
	seqNarrow = seqLayout{id: "narrow", axis: 62, spacing: 92, margin: 46}
)

const (
	seqLine = 14.0 // one line of text
	seqChar = 6.1  // the width of a letter, a generous estimate
	seqTop  = 18.0 // the baseline of the names of the lanes
)

// seqView is the layout of a picture. The template only writes it out.
type seqView struct {
	ID            string // unique on the page
	Class         string
	Width, Height float64
	Lanes         []seqLaneView
	Arrows        []seqArrow
	Tell          string
	Omitted       int
}

type seqLaneView struct {
	Name        string
	X, Top, End float64
	Lines       []seqText
}

// seqText is a line of text. Anchor is "start", "middle" or "end".
type seqText struct {
	X, Y         float64
	Anchor, Text string
}

// seqArrow is an event. Its line ends at a head, at a cross, or nowhere.
type seqArrow struct {
	Class              string
	X1, X2, Y          float64
	Head, Cross, Point string // SVG path data, or ""
	Time               seqText
	Label              []seqText
}

// draw lays the sequence out. number makes the id unique.
func (s sequence) draw(l seqLayout, number string) seqView {
	if len(s.Lanes) > 3 && l.id == seqWide.id { // so that four lanes fit into a page
		l.spacing, l.margin = 180, 92
	}
	v := seqView{ID: "sequence-" + number + "-" + l.id, Class: l.id, Tell: s.Tell(), Omitted: s.Omitted}
	v.Width = l.axis + l.spacing*float64(len(s.Lanes)-1) + l.margin + l.spacing/2
	x := func(lane int) float64 { return round(l.axis + l.spacing*(float64(lane)+.5)) }
	top := seqTop
	for n, lane := range s.Lanes {
		lv := seqLaneView{Name: lane.Name, X: x(n)}
		y := seqTop
		lv.Lines = centred(wrapped(lane.Name, l.spacing, 2), lv.X, &y)
		for _, note := range lane.Notes {
			lv.Lines = append(lv.Lines, centred(wrapped(note, l.spacing, 2), lv.X, &y)...)
		}
		top = max(top, y)
		v.Lanes = append(v.Lanes, lv)
	}
	y := top + 4
	previous := ""
	for _, e := range s.Events {
		a := seqArrow{Class: string(e.Kind), X1: x(e.From), X2: x(e.To)}
		a.Label = v.label(e, l, a.X1, a.X2, &y)
		a.Y = round(y)
		switch {
		case e.From == e.To:
			a.Point = fmt.Sprintf("M%g %gh.01", a.X1, a.Y)
		case e.Kind == seqBlocked:
			middle := (a.X1 + a.X2) / 2
			a.Cross = fmt.Sprintf("M%g %gl12 12m0-12l-12 12", round(middle-6), round(a.Y-6))
		case e.Kind != seqUnused:
			back := 8.0
			if a.X2 > a.X1 {
				back = -8
			}
			a.Head = fmt.Sprintf("M%g %gl%g-4.5v9z", a.X2, a.Y, back)
		}
		if t := moment(e.At); t != previous && e.Kind != seqBlocked && e.Kind != seqUnused {
			a.Time, previous = seqText{X: l.axis, Y: a.Y + 4, Anchor: "end", Text: t}, t
		}
		v.Arrows = append(v.Arrows, a)
		y += 16
	}
	v.Height = round(y + 12)
	for n := range v.Lanes {
		v.Lanes[n].Top, v.Lanes[n].End = round(top), round(v.Height-4)
	}
	return v
}

// label places the label of an event above its arrow, and moves y down to the arrow. The label of
// an answer is at the end of the arrow. No label leaves the picture.
func (v seqView) label(e seqEvent, l seqLayout, x1, x2 float64, y *float64) []seqText {
	lines := wrapped(e.Label, max(l.spacing*1.6, v.Width-l.axis-l.spacing), 2)
	width := 0.0
	for _, line := range lines {
		width = max(width, seqWidth(line))
	}
	middle := (x1 + x2) / 2
	if e.Kind == seqAnswer || e.Kind == seqWrong {
		if middle = x2 - width/2 - 12; x2 < x1 {
			middle = x2 + width/2 + 12
		}
	}
	middle = min(max(middle, l.axis+8+width/2), v.Width-width/2-2)
	out := centred(lines, round(middle), y)
	*y += 7 - seqLine + 8
	return out
}

// centred places lines of text below each other, beginning one line below y.
func centred(lines []string, x float64, y *float64) []seqText {
	var out []seqText
	for _, line := range lines {
		out = append(out, seqText{X: x, Y: round(*y), Anchor: "middle", Text: line})
		*y += seqLine
	}
	return out
}

func seqWidth(s string) float64 { return float64(len([]rune(s))) * seqChar }

// wrapped breaks a text into at most so many lines of that width. It breaks at spaces and, in
// paths, after slashes; what does not fit ends in an ellipsis.
func wrapped(s string, width float64, most int) []string {
	room := max(4, int(width/seqChar))
	rest := []rune(strings.Join(strings.Fields(s), " "))
	var lines []string
	for len(rest) > 0 {
		if len(rest) <= room {
			return append(lines, string(rest))
		}
		if len(lines) == most-1 {
			return append(lines, string(rest[:room-1])+"…")
		}
		cut := room
		for n := room; n > room/3; n-- {
			if rest[n] == ' ' || rest[n-1] == '/' || rest[n-1] == ' ' {
				cut = n
				break
			}
		}
		lines = append(lines, strings.TrimSpace(string(rest[:cut])))
		rest = []rune(strings.TrimSpace(string(rest[cut:])))
	}
	return lines
}
