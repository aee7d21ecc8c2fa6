package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// report is the part of gremlins' output file that is read here.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

func readReport(file string) (report, error) {
	var r report
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read %s, which gremlins wrote: %w", file, err)
	}
	return r, nil
}

// A row is the result for one package.
type row struct {
	Package                                      string
	Mutants, Killed, Lived, NotCovered, TimedOut int
	NotViable                                    int // not among the mutants: the compiler finds them
	LeftOut                                      int // by a sample; not among the mutants either
	Took                                         time.Duration
	Day                                          string
}

// add counts a report. The totals of gremlins leave out mutants that timed out. In the report,
// mutants outside a sample are among those that are not viable.
func (r *row) add(result report) error {
	r.NotViable -= r.LeftOut
	for _, file := range result.Files {
		for _, m := range file.Mutations {
			switch m.Status {
			case "KILLED":
				r.Killed++
			case "LIVED":
				r.Lived++
			case "NOT COVERED":
				r.NotCovered++
			case "TIMED OUT":
				r.TimedOut++
			case "NOT VIABLE":
				r.NotViable++
				continue
			default:
				return fmt.Errorf("gremlins says %q of a mutant in %s, which this program does not know", m.Status, file.Name)
			}
			r.Mutants++
		}
	}
	if r.Killed+r.Lived == 0 {
		return fmt.Errorf("no mutant of %s was killed and none lived: nothing was tested", r.Package)
	}
	return nil
}

// efficacy is the share of killed mutants among those that were killed or lived, in percent: what
// gremlins calls by that name.
func (r row) efficacy() float64 { return 100 * float64(r.Killed) / float64(r.Killed+r.Lived) }

const heading = "| package | mutants | killed | lived | timed out | not covered | efficacy | took | day |\n|---|---|---|---|---|---|---|---|---|\n"

func (r row) String() string {
	mutants := fmt.Sprint(r.Mutants)
	if r.LeftOut > 0 {
		mutants = fmt.Sprintf("%d of %d", r.Killed+r.Lived+r.TimedOut, r.Mutants+r.LeftOut)
	}
	return fmt.Sprintf("| `%s` | %s | %d | %d | %d | %d | %.1f %% | %s | %s |\n",
		r.Package, mutants, r.Killed, r.Lived, r.TimedOut, r.NotCovered, r.efficacy(), r.Took.Round(time.Second), r.Day)
}

// replaceRows puts rows into the table of a page; rows of other packages stay.
func replaceRows(page string, rows []row) (string, error) {
	start := strings.Index(page, heading)
	if start < 0 {
		return "", fmt.Errorf("the page has no table that begins with %q", strings.SplitN(heading, "\n", 2)[0])
	}
	start += len(heading)
	end := start
	lines := map[string]string{}
	for line := range strings.Lines(page[start:]) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		end += len(line)
		lines[strings.Split(line, "`")[1]] = line
	}
	for _, r := range rows {
		lines[r.Package] = r.String()
	}
	var names []string
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	for _, name := range names {
		table.WriteString(lines[name])
	}
	return page[:start] + table.String() + page[end:], nil
}
