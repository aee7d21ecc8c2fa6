package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	classRowHeight = 12.0 // of a row for a class of requests
	classCell      = 10.0 // the part of it that is drawn
)

// rowView is the row of one class of requests.
type rowView struct {
	Label  string
	Y      float64 // of the middle
	Server string
	Cells  []bar
}

// proportion is how large a part of the answers was of one kind, in quarters. What is wrong, and
// 503, take at least half, because they must be seen among many right answers.
type proportion struct {
	class string
	part  int
}

// stretch is a stretch of time in which the shares did not change.
type stretch struct {
	from, to Seconds
	shares   []proportion
	counts   Bucket
}

// newRow draws a row. Neighbouring buckets that look the same become one cell, so that a steady
// history takes little room.
func newRow(server string, r ClassRow, s scale, width Seconds, top float64) rowView {
	v := rowView{Label: r.Class, Y: top + classCell/2, Server: server}
	var cells []stretch
	for _, b := range r.Buckets {
		next := stretch{b.StartSeconds, b.StartSeconds + width, b.shares(), b}
		if n := len(cells); n > 0 && math.Abs(float64(cells[n-1].to-next.from)) < 1e-6 && slices.Equal(cells[n-1].shares, next.shares) {
			cells[n-1].to = next.to
			cells[n-1].counts.sum(b)
			continue
		}
		cells = append(cells, next)
	}
	for _, c := range cells {
		x, w := s.x(c.from), s.width(c.from, c.to)
		out := bar{Title: fmt.Sprintf("%s, %s, %s to %s: %s", server, r.Class, clock(c.from), clock(c.to), c.counts.inWords())}
		y := top + classCell
		for _, part := range c.shares {
			h := classCell * float64(part.part) / 4
			h = min(h, y-top)
			y = round(y - h)
			if h > 0 {
				out.Parts = append(out.Parts, rect{X: x, Y: y, W: w, H: round(h), Class: part.class})
			}
		}
		v.Cells = append(v.Cells, out)
	}
	return v
}

// shares are the kinds of answers in the order of their weight, what is wrong first.
func (b Bucket) shares() []proportion {
	total := b.Total()
	var out []proportion
	left := 4
	for _, k := range []struct {
		class        string
		count, least int
	}{{"wrong", b.Wrong, 2}, {"unavailable", b.Unavailable, 2}, {"no-response", b.NoResponse + b.ServerError, 1},
		{"missing-resource", b.MissingResource, 1}} {
		if k.count == 0 || left == 0 {
			continue
		}
		part := min(left, max(k.least, int(math.Round(4*float64(k.count)/float64(total)))))
		left -= part
		out = append(out, proportion{k.class, part})
	}
	if right := total - b.Wrong - b.Unavailable - b.NoResponse - b.ServerError - b.MissingResource; right > 0 && left > 0 {
		out = append(out, proportion{"success", left})
	}
	return out
}

// sum adds the counts of another bucket.
func (b *Bucket) sum(o Bucket) {
	b.Wrong += o.Wrong
	b.Success += o.Success
	b.MissingObject += o.MissingObject
	b.UnservedResource += o.UnservedResource
	b.MissingResource += o.MissingResource
	b.Unavailable += o.Unavailable
	b.ServerError += o.ServerError
	b.NoResponse += o.NoResponse
	b.Other += o.Other
}

// bucketKind is a kind of answers, with its class of the style sheet.
type bucketKind struct {
	count       int
	class, name string
}

// kinds are the kinds of answers, what a reviewer looks for first.
func (b Bucket) kinds() []bucketKind {
	return []bucketKind{
		{b.Wrong, "wrong", "judged wrong"},
		{b.MissingResource, "missing-resource", "404 resource"},
		{b.NoResponse, "no-response", "no response"},
		{b.ServerError, "server-error", "other 5xx"},
		{b.Unavailable, "unavailable", "503"},
		{b.UnservedResource, "unserved-resource", "404 resource that nobody serves"},
		{b.MissingObject, "missing-object", "404 object"},
		{b.Other, "other", "other status"},
		{b.Success, "success", "2xx or 304"},
	}
}

func (b Bucket) inWords() string {
	var out []string
	for _, k := range b.kinds() {
		if k.count > 0 {
			out = append(out, fmt.Sprintf("%s × %s", grouped(k.count), k.name))
		}
	}
	return strings.Join(out, ", ")
}
