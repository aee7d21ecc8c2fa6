package lab

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// setting is the kind of run in which a deviation is tried.
type setting struct {
	name, subject string
	// usual is the scenario for deviations that name none; empty: the setting is only for those.
	usual string
	saved bool // a history of real servers
}

// settings are the columns of the table. In a clean run nothing is wrong before the deviation.
// Beside known violations, findings explain what was wrong before.
var settings = []setting{
	{name: "clean", subject: scenario.SubjectReference, usual: "etag-and-legacy-clients"},
	{name: "beside known", subject: scenario.SubjectBuiltin, usual: "restart-during-partition"},
	{name: "under faults", subject: scenario.SubjectReference, usual: "peer-partition"},
	{name: "real servers", subject: scenario.SubjectBuiltin, usual: "rolling-upgrade", saved: true},
}

// runFor returns the name of the run in which a deviation is tried; "" if there is none.
func (s setting) runFor(d deviation, names []string) string {
	name := cmp.Or(d.on, s.usual)
	if s.saved {
		if name += "-" + s.subject; slices.Contains(names, name) {
			return name
		}
		return ""
	}
	found, err := scenarios.Find(name)
	if err != nil || !found.Limits.Allows(scenario.BackendSim) || s.name == "under faults" && d.on != "" && d.on != s.usual {
		return ""
	}
	return name + "/" + s.subject
}

// result is what became of a deviation.
type result string

const (
	caught       result = "caught"       // as is right: a NEW violation, or a run that proves nothing
	inconclusive result = "inconclusive" // the run proves nothing, though something is wrong
	calledKnown  result = "known"        // a finding explains it, though none predicts it
	missed       result = "missed"       // the run is judged as though nothing was altered
	falseAlarm   result = "false alarm"  // a violation, though nothing is wrong or nothing can be said
	inOrder      result = "in order"     // acceptable, and taken as that
)

var results = []result{caught, inconclusive, calledKnown, missed, falseAlarm, inOrder}

// before is what the judge says about a run before it is altered.
type before struct {
	history  *history.History
	fresh    map[invariant.Signature]int // violations that no finding explains
	known    map[invariant.Signature]int
	outcomes map[string]invariant.Outcome
}

func weigh(h *history.History) (before, []invariant.Verdict) {
	b := before{h, map[invariant.Signature]int{}, map[invariant.Signature]int{}, map[string]invariant.Outcome{}}
	catalogue := findings.For(h.Run.Subject)
	verdicts := invariant.Judge(h)
	for _, v := range verdicts {
		b.outcomes[v.Name] = v.Outcome
		for _, e := range v.Evidence {
			if _, ok := catalogue.Explain(e.Signature); ok {
				b.known[e.Signature] += e.Count
			} else {
				b.fresh[e.Signature] += e.Count
			}
		}
	}
	return b, verdicts
}

// more reports whether there are more violations of some kind than before.
func more(before, after map[invariant.Signature]int) bool {
	for s, n := range after {
		if n > before[s] {
			return true
		}
	}
	return false
}

// try alters a run and judges it. The reason is why the run is inconclusive, or the finding that
// explains too much. ok is false if the deviation does not apply to the run.
func try(d deviation, b before) (r result, reason string, ok bool) {
	e := newEdit(b.history)
	d.alter(e)
	if e.touched == 0 {
		return "", "", false
	}
	var saved bytes.Buffer
	if err := history.Write(&saved, e.done()); err != nil {
		return caught, "refused", true
	}
	h, err := history.Read(&saved)
	if err != nil {
		return caught, "refused", true
	}
	after, verdicts := weigh(h)
	doubt := ""
	for _, v := range verdicts {
		if doubt == "" && v.About && v.Outcome == invariant.OutcomeInconclusive && b.outcomes[v.Name] != invariant.OutcomeInconclusive {
			reason, _, _ := strings.Cut(v.Reason, ";")
			doubt = v.Name + ": " + numbers.ReplaceAllString(reason, "N")
		}
	}
	alarm, excused := more(b.fresh, after.fresh), more(b.known, after.known)
	switch {
	case d.right == acceptable && (alarm || doubt != ""):
		return falseAlarm, doubt, true
	case d.right == acceptable:
		return inOrder, "", true
	case d.right == undecided && alarm:
		return falseAlarm, "", true
	case d.right == undecided && doubt != "", alarm:
		return caught, "", true
	case doubt != "":
		return inconclusive, doubt, true
	case excused:
		catalogue := findings.For(h.Run.Subject)
		for _, s := range slices.SortedFunc(maps.Keys(after.known), invariant.Signature.Compare) {
			if f, _ := catalogue.Explain(s); after.known[s] > b.known[s] {
				return calledKnown, "finding " + strconv.Itoa(f.Number), true
			}
		}
	}
	return missed, "", true
}

// numbers are left out of reasons, so that the table changes only if a verdict does.
var numbers = regexp.MustCompile(`[0-9][0-9.,]*`)

// row of the table.
type tried struct {
	deviation
	results map[string]result
	reasons []string
}

// TestDeviations alters histories in named ways, and holds what the judge says of each. The table
// may change in one direction only: what was missed before may be caught. Without -full it tries
// every sixtieth deviation, and compares it with the table.
func TestDeviations(t *testing.T) {
	const page = "../../docs/lab/deviations.md"
	list := deviations()
	names := saved(t)
	runs := map[string]func() before{}
	for _, d := range list {
		for _, s := range settings {
			name := s.runFor(d, names)
			if name == "" || runs[name] != nil {
				continue
			}
			runs[name] = sync.OnceValue(func() before {
				if s.saved {
					b, _ := weigh(readSaved(t, name))
					return b
				}
				chosen, err := scenarios.Find(strings.TrimSuffix(name, "/"+s.subject))
				if err != nil {
					t.Error(err)
				}
				b, _ := weigh(simulate(t, chosen, s.subject))
				return b
			})
		}
	}
	rows := make([]tried, len(list))
	var workers sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				rows[i] = tried{deviation: list[i], results: map[string]result{}}
				for _, s := range settings {
					name := s.runFor(list[i], names)
					if name == "" {
						continue
					}
					r, reason, ok := try(deviations()[i], runs[name]())
					if !ok {
						continue
					}
					rows[i].results[s.name] = r
					if reason != "" && !slices.Contains(rows[i].reasons, reason) {
						rows[i].reasons = append(rows[i].reasons, reason)
					}
				}
			}
		})
	}
	for i := range list {
		if *full || i%60 == 0 {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	kept, _ := os.ReadFile(page)
	if !*full {
		for _, r := range rows {
			if r.name != "" && !strings.Contains(string(kept), r.line()) {
				t.Errorf("the table of %s does not have this line; judge all deviations with -full, and review it with -update:\n%s", page, r.line())
			}
		}
		return
	}
	made, counts := table(rows)
	for _, r := range rows {
		if len(r.results) == 0 {
			t.Errorf("%s: %s: it applies to no run", r.family, r.name)
		}
	}
	for _, one := range results {
		note("deviations", counts[one], string(one))
	}
	was := cells(string(kept))
	for name, now := range cells(made) {
		for i, before := range was[name] {
			if before != "–" && before != string(missed) && now[i] == string(missed) {
				t.Errorf("%s, %s: it is missed, and was %s before: the number may only fall", name, settings[i].name, before)
			}
		}
	}
	if t.Failed() {
		return
	}
	golden.Hold(t, page, made)
}

// cells returns the results in a page, by family and deviation.
func cells(page string) map[string][]string {
	all := map[string][]string{}
	family := ""
	for line := range strings.Lines(page) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			family = strings.TrimSpace(heading)
		}
		if words := strings.Split(line, " | "); family != "" && len(words) == len(settings)+3 {
			all[family+": "+strings.TrimPrefix(words[0], "| ")] = words[2 : 2+len(settings)]
		}
	}
	return all
}

// line is the row in the table.
func (r tried) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |", r.name, r.right)
	for _, s := range settings {
		fmt.Fprintf(&b, " %s |", cmp.Or(r.results[s.name], "–"))
	}
	fmt.Fprintf(&b, " %s |\n", strings.Join(r.reasons, "<br>"))
	return b.String()
}

const deviationsPage = `# Altered histories, and what the judge says of them

Each deviation alters a recorded history in one way. The right verdict was written before the judge
was asked: *wrong* (a NEW violation, because no finding predicts this answer), *not decided* (the
record cannot be, so the run proves nothing) or *acceptable* (no violation). The runs are: a clean
one, one beside known violations, one under faults, and a saved one of real servers. A dash means
that the run has nothing to alter in this way. ` + "`make deviations`" + ` makes this page.

- **caught**: as is right
- **inconclusive**: the run proves nothing, for the reason in the last column
- **known**: a finding explains it, though none predicts it
- **missed**: the judge notices nothing
- **false alarm**: a violation, though nothing is wrong or nothing can be said
- **in order**: acceptable, and taken as that

`

// table writes the page, and counts the results.
func table(rows []tried) (string, map[result]int) {
	counts, by := map[result]int{}, map[string]map[result]int{}
	for _, s := range settings {
		by[s.name] = map[result]int{}
	}
	for _, r := range rows {
		for s, one := range r.results {
			counts[one]++
			by[s][one]++
		}
	}
	var b strings.Builder
	b.WriteString(deviationsPage)
	fmt.Fprintf(&b, "%d deviations:\n\n| |", len(rows))
	for _, s := range settings {
		b.WriteString(" " + s.name + " |")
	}
	b.WriteString(" all |\n|---|" + strings.Repeat("---|", len(settings)+1) + "\n")
	for _, one := range results {
		fmt.Fprintf(&b, "| %s |", one)
		for _, s := range settings {
			fmt.Fprintf(&b, " %d |", by[s.name][one])
		}
		fmt.Fprintf(&b, " %d |\n", counts[one])
	}
	family := ""
	for _, r := range rows {
		if r.family != family {
			family = r.family
			fmt.Fprintf(&b, "\n## %s\n\n| deviation | right |", strings.ToUpper(family[:1])+family[1:])
			for _, s := range settings {
				b.WriteString(" " + s.name + " |")
			}
			b.WriteString(" why |\n|---|---|" + strings.Repeat("---|", len(settings)+1) + "\n")
		}
		b.WriteString(r.line())
	}
	return b.String(), counts
}
