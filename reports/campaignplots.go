package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// kindRow is a row of the table of kinds. Link leads to the card of the kind.
type kindRow struct {
	*CampaignFinding
	Link    string
	Decides bool
	Percent float64 // of all schedules
}

// newKinds sorts the kinds of violations for the table: NEW ones first, then by grade and
// frequency.
func newKinds(c *Campaign) (rows []kindRow) {
	for i := range c.Findings {
		f := &c.Findings[i]
		rows = append(rows, kindRow{f, fmt.Sprintf("violation-%d", i+1), c.Decides(f.Grade),
			100 * float64(f.Schedules) / float64(max(c.Schedules, 1))})
	}
	slices.SortStableFunc(rows, func(a, b kindRow) int {
		return cmp.Or(cmp.Compare(min(a.Finding, 1), min(b.Finding, 1)), cmp.Compare(a.Grade, b.Grade), cmp.Compare(b.Schedules, a.Schedules),
			cmp.Compare(a.Finding, b.Finding))
	})
	return rows
}

// newGrowth plots how the results grew with the schedules. A plot that would have fewer than two
// points is left out.
func newGrowth(c *Campaign) (plots []plot) {
	if len(c.Growth) < 2 {
		return nil
	}
	all := func(class, name string, steps bool, of func(GrowthPoint) float64) series {
		s := series{class: class, name: name, steps: steps}
		for _, g := range c.Growth {
			s.points = append(s.points, point{float64(g.Schedules), of(g)})
		}
		return s
	}
	log := c.Real == nil
	kinds := all("kinds", "kinds of violations", true, func(g GrowthPoint) float64 { return float64(g.Kinds) })
	if log { // the seeds of the findings say more than the points
		kinds = kindsBySeed(c)
	}
	p, x, y := newPlot("growth-kinds", "Kinds of violations", "schedules", log, kinds)
	if log {
		for n, at := range kinds.points[1 : len(kinds.points)-1] {
			f := bySeed(c)[n]
			p.Marks = append(p.Marks, plotMark{
				X: x.at(at.x), Y: y.at(at.y), Href: fmt.Sprintf("#violation-%d", f+1), Class: kindClass(c.Findings[f]),
				Name: fmt.Sprintf("after %s: %s", counted(int(at.x), "schedule"), c.Findings[f].ViolationKind),
			})
		}
	}
	plots = append(plots, p)
	if c.Real != nil {
		p, _, _ = newPlot("growth-cells", "Cells of the coverage that were reached", "schedules", false,
			all("traces", "cells", true, func(g GrowthPoint) float64 { return float64(g.Cells) }))
		return append(plots, p)
	}
	last := float64(c.Growth[len(c.Growth)-1].Schedules)
	p, _, _ = newPlot("growth-traces", "Different traces and orders of events", "schedules", false,
		series{class: "bound", name: "if no trace came twice", points: []point{{0, 0}, {last, last}}},
		all("shapes", "orders of events", false, func(g GrowthPoint) float64 { return float64(g.Shapes) }),
		all("traces", "traces", false, func(g GrowthPoint) float64 { return float64(g.Traces) }))
	return append(plots, p)
}

func kindClass(f CampaignFinding) string {
	if f.Finding == 0 {
		return "new"
	}
	return "known"
}

// bySeed are the indexes of the findings, by the schedule that showed each first.
func bySeed(c *Campaign) []int {
	all := make([]int, len(c.Findings))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(c.Findings[a].Seed, c.Findings[b].Seed) })
	return all
}

// kindsBySeed has a point for the beginning, one for each finding, and one for the end.
func kindsBySeed(c *Campaign) series {
	s := series{class: "kinds", name: "kinds of violations", steps: true, points: []point{{1, 0}}}
	for n, i := range bySeed(c) {
		place := (c.Findings[i].Seed-min(c.FirstSeed, c.Findings[i].Seed))/uint64(max(c.Of, 1)) + 1
		s.points = append(s.points, point{float64(place), float64(n + 1)})
	}
	s.points = append(s.points, point{float64(c.Schedules), float64(len(c.Findings))})
	return s
}

// coverageGrid shows which faults, transitions and classes of requests came together.
type coverageGrid struct {
	Width, Height float64
	Columns       []tick // the transitions
	Rows          []coverageRowView
	Classes       []string
}

type coverageRowView struct {
	Y     float64
	Fault string
	Cells []rect
}

const (
	coverageLeft = 150.0
	coverageTop  = 78.0
	coverageRow  = 24.0
)

// newCoverage lays out the grid: a row for each fault, a column for each transition, and in it a
// stripe for each class of requests, the darker the more requests there were.
func newCoverage(r *RealCampaign) *coverageGrid {
	if r == nil || r.Axes.Cells() == 0 {
		return nil
	}
	a := r.Axes
	g := &coverageGrid{Width: chartWidth, Height: coverageTop + coverageRow*float64(len(a.Faults)) + 6, Classes: a.Classes}
	column := (chartRight - coverageLeft) / float64(len(a.Transitions))
	stripe := (column - 8) / float64(len(a.Classes))
	count := map[[3]string]uint64{}
	for _, c := range r.Coverage {
		count[[3]string{c.Fault, c.Transition, c.Class}] = c.Requests
	}
	for i, t := range a.Transitions {
		g.Columns = append(g.Columns, tick{round(coverageLeft + column*float64(i)), t})
	}
	for n, fault := range a.Faults {
		row := coverageRowView{Y: coverageTop + coverageRow*float64(n), Fault: fault}
		for i, transition := range a.Transitions {
			left := coverageLeft + column*float64(i)
			reached, told := 0, []string{}
			for j, class := range a.Classes {
				requests := count[[3]string{fault, transition, class}]
				if requests == 0 {
					continue
				}
				reached++
				told = append(told, fmt.Sprintf("%s: %s", class, grouped(int(requests))))
				row.Cells = append(row.Cells, rect{
					X: round(left + stripe*float64(j)), Y: row.Y + 2, W: round(stripe - 0.6), H: coverageRow - 4,
					Class: fmt.Sprintf("reach-%d", reachLevel(requests)),
				})
			}
			title := fmt.Sprintf("%s, after %s: %d of %d classes of requests", fault, transition, reached, len(a.Classes))
			if reached > 0 {
				title += "; " + strings.Join(told, ", ")
			}
			row.Cells = append(row.Cells, rect{X: round(left - 1), Y: row.Y + 1, W: round(column - 6), H: coverageRow - 2, Class: "frame",
				Title: title})
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// reachLevel is 1 for below 10 requests, 2 for below 100, 3 for below 1,000, and else 4.
func reachLevel(requests uint64) int {
	return min(4, 1+int(math.Log10(float64(requests))))
}

// gapRow is a NEW violation that the simulator does not show, with a link to its card.
type gapRow struct{ Text, Link string }

func newGaps(c *Campaign) (rows []gapRow) {
	if c.Real == nil {
		return nil
	}
	for _, gap := range c.Real.Gaps {
		row := gapRow{Text: gap}
		if i := slices.IndexFunc(c.Findings, func(f CampaignFinding) bool { return f.ViolationKind.String() == gap }); i >= 0 {
			row.Link = fmt.Sprintf("violation-%d", i+1)
		}
		rows = append(rows, row)
	}
	return rows
}

// reachRow is an interesting state of the simulator. Part is how many of the schedules reached it,
// from 0 to 100, on a logarithmic scale.
type reachRow struct {
	Reach
	Part float64
}

func newReached(c *Campaign) (rows []reachRow) {
	for _, r := range c.Reached {
		part := 0.0
		if r.Schedules > 0 && c.Schedules > 0 {
			part = round(100 * math.Log1p(float64(r.Schedules)) / math.Log1p(float64(c.Schedules)))
		}
		rows = append(rows, reachRow{r, part})
	}
	return rows
}
