package reports

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// matrixSection is one class of requests of the table of counts.
type matrixSection struct {
	Title, Meaning string
	Rows           []matrixRow
	Totals         []int // by server, then over all
}

// matrixRow is one kind of answer: how often each server gave it.
type matrixRow struct {
	Answer string
	Counts []int // by server, then over all
}

// newMatrix lays the counts out as a table: one section per class, one row per answer, one column per server.
func newMatrix(r RunReport) []matrixSection {
	columns := map[string]int{}
	for n, s := range r.Servers {
		columns[s.Name] = n
	}
	width := len(r.Servers) + 1
	var sections []matrixSection
	for _, class := range classes {
		section := matrixSection{Title: class.title, Meaning: class.meaning, Totals: make([]int, width)}
		counts := slices.Clone(r.Counts)
		slices.SortStableFunc(counts, func(a, b Count) int { return a.Status - b.Status })
		for _, c := range counts {
			column, ok := columns[c.Server]
			if c.Class != class.class || !ok {
				continue
			}
			answer := c.answer()
			n := slices.IndexFunc(section.Rows, func(row matrixRow) bool { return row.Answer == answer })
			if n < 0 {
				n = len(section.Rows)
				section.Rows = append(section.Rows, matrixRow{answer, make([]int, width)})
			}
			for _, at := range []int{column, width - 1} {
				section.Rows[n].Counts[at] += c.Count
				section.Totals[at] += c.Count
			}
		}
		if len(section.Rows) > 0 {
			sections = append(sections, section)
		}
	}
	return sections
}

func (c Count) answer() string {
	switch {
	case c.Status == 0:
		return strings.TrimSpace("no response " + parenthesized(c.Detail))
	case c.Status == 404 && c.Detail != "":
		return "404 " + c.Detail + " not found"
	default:
		return strings.TrimSpace(strconv.Itoa(c.Status) + " " + http.StatusText(c.Status) + " " + parenthesized(c.Detail))
	}
}

func parenthesized(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
