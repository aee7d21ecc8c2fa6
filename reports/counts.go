package reports

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Count is how many requests of one class to one server got one kind of answer.
type Count struct {
	// Server is the server that was asked.
	Server string `json:"server"`
	// Class says who could have served the request, according to ground truth and not to the
	// answer.
	Class invariant.Class `json:"class"`
	// Status is the HTTP status code. It is 0 if no response header arrived.
	Status int `json:"status"`
	// Detail is "object" or "resource" for a 404. Without a complete response, it is the reason
	// ("refused", "reset", "timeout", …).
	Detail string `json:"detail,omitempty"`
	// Count is the number of these requests.
	Count int `json:"count"`
}

func newCounts(facts *invariant.Facts) []Count {
	counts := map[Count]int{}
	for o, handled := range facts.Handled() {
		key := Count{Server: o.Server, Class: handled.Class, Status: o.Status, Detail: string(o.Missing)}
		if o.Failure != history.FailureNone {
			key.Detail = string(o.Failure)
		}
		counts[key]++
	}
	out := make([]Count, 0, len(counts))
	for key, n := range counts {
		key.Count = n
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(
			cmp.Compare(a.Server, b.Server),
			cmp.Compare(order(a.Class), order(b.Class)),
			cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return out
}

// classes are the classes of requests in the order in which they are shown.
var classes = []classInWords{
	{invariant.ClassServedHere, "Served here", "the server that was asked serves the resource itself"},
	{invariant.ClassSkewed, "Skewed", "the server that was asked does not serve the resource, another live one does"},
	{invariant.ClassUnserved, "Unserved", "no live server serves the resource"},
	{invariant.ClassDiscovery, "Discovery", "about no resource"},
	{invariant.ClassDown, "Down", "the server that was asked was not running"},
	{invariant.ClassUnknown, "Unknown", "what was served changed meanwhile, or was not known"},
}

// classInWords is a class with its name and its meaning, for readers who see the class for the
// first time.
type classInWords struct {
	class          invariant.Class
	title, meaning string
}

func order(c invariant.Class) int {
	return slices.IndexFunc(classes, func(w classInWords) bool { return w.class == c })
}

// matrixSection is one class of requests in the table of counts.
type matrixSection struct {
	Title, Meaning string
	Rows           []matrixRow
	Totals         []int // by server, then over all
}

// matrixRow is one kind of answer, with how often each server gave it.
type matrixRow struct {
	Answer string
	Counts []int // by server, then over all
}

// newMatrix makes a table of the counts. Its sections are classes, its rows answers, its columns
// servers.
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
