package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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

// growthRow is a point of the growth, with bars: how much of the last point it has, from 0 to 100.
type growthRow struct {
	GrowthPoint
	KindsPart, CellsPart float64
}

// newGrowth shows how the results grew with the schedules. It is nil for fewer than two points.
func newGrowth(c *Campaign) (rows []growthRow) {
	if len(c.Growth) < 2 {
		return nil
	}
	last := len(c.Growth) - 1
	of, every := c.Growth[last], last/mostGrowth+1
	for n, g := range c.Growth {
		if n%every == 0 || n == last {
			rows = append(rows, growthRow{g, barOf(float64(g.Kinds), float64(of.Kinds)), barOf(float64(g.Cells), float64(of.Cells))})
		}
	}
	return rows
}

// mostGrowth is how many points of the growth the page has, about. campaign.json has all of them.
const mostGrowth = 30

// barOf is n of most, from 0 to 100.
func barOf(n, most float64) float64 { return round(100 * n / max(most, 1)) }

// logBar is the same on a logarithmic scale.
func logBar(n, most uint64) float64 { return barOf(math.Log1p(float64(n)), math.Log1p(float64(most))) }

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
		rows = append(rows, reachRow{r, logBar(r.Schedules, c.Schedules)})
	}
	return rows
}
