package reports

import (
	"fmt"
	"io"
	"strings"
)

// MethodReal means that random schedules were carried out on real servers.
const MethodReal Method = "real"

// RealCampaign is what only a campaign on real servers has.
type RealCampaign struct {
	// Subject is whose proxy was tested. Versions are those of the kube-apiservers.
	Subject  string   `json:"subject"`
	Versions []string `json:"versions"`
	// Controllers is true if schedules start kube-controller-manager. ControllersWorked is in how
	// many schedules the garbage collector was at work, and objects for it existed.
	Controllers       bool   `json:"controllers,omitempty"`
	ControllersWorked uint64 `json:"controllersWorked,omitempty"`
	// QPS is the rate of the load. Environment describes the machine and the binaries.
	QPS         float64  `json:"qps"`
	Environment []string `json:"environment,omitempty"`
	// Sessions are the clusters that were used, in order.
	Sessions []RealSession `json:"sessions"`
	// Operations is how many requests were judged, and PassedOn how many of them a peer handled.
	Operations uint64 `json:"operations"`
	PassedOn   uint64 `json:"passedOn"`
	// ScheduleSeconds is how long a schedule took on average, with the reset before it, which took
	// ResetSeconds.
	ScheduleSeconds float64 `json:"scheduleSeconds"`
	ResetSeconds    float64 `json:"resetSeconds"`
	// AloneSeconds is how long a run of one schedule took on average that was repeated on a new
	// cluster, and AloneRuns is how many there were. Both are 0 if there was none.
	AloneSeconds float64 `json:"aloneSeconds,omitempty"`
	AloneRuns    uint64  `json:"aloneRuns,omitempty"`
	// NextSeed is the first seed that was not looked at. A campaign that is continued begins there.
	NextSeed uint64 `json:"nextSeed"`
	// Overloaded is how many schedules had wrong answers that do not count, because the machine was
	// overloaded.
	Overloaded uint64 `json:"overloaded,omitempty"`
	// Coverage is what was reached. Axes are all values that a cell can have.
	Coverage []CoverageCell `json:"coverage"`
	Axes     CoverageAxes   `json:"axes"`
	// Gaps are the NEW violations that the simulator does not show with the presets of the versions.
	Gaps []string `json:"gaps,omitempty"`
}

// RealSession is one cluster of a campaign.
type RealSession struct {
	// Schedules is how many schedules were carried out on it.
	Schedules int `json:"schedules"`
	// Ended says why it was not used any longer.
	Ended string `json:"ended"`
}

// CoverageAxes are all faults, transitions and classes of requests, in the order in which they are
// shown.
type CoverageAxes struct {
	// Faults and Transitions begin with "none". Classes are the classes of pressure of requests.
	Faults      []string `json:"faults"`
	Transitions []string `json:"transitions"`
	Classes     []string `json:"classes"`
}

// Cells is how many cells there are.
func (a CoverageAxes) Cells() int { return len(a.Faults) * len(a.Transitions) * len(a.Classes) }

// CoverageCell counts the requests that peers have to do with, while a fault was on and after a
// transition.
type CoverageCell struct {
	// Fault is the kind of the fault, or "none".
	Fault string `json:"fault"`
	// Transition is the last change before the request, or "none".
	Transition string `json:"transition"`
	// Class is the class of pressure of the request.
	Class string `json:"class"`
	// Requests is how many such requests there were.
	Requests uint64 `json:"requests"`
}

// RealFinding is what only a finding on real servers has.
type RealFinding struct {
	// Run is the directory of the run that shows it, beside the report.
	Run string `json:"run,omitempty"`
	// Confirmed of Repeated runs of the schedule, each on a new cluster, showed it again.
	Confirmed int `json:"confirmed"`
	Repeated  int `json:"repeated"`
	// After are the seeds of the schedules that were carried out before on the same cluster.
	After []uint64 `json:"after,omitempty"`
	// Model says whether the simulator shows it too.
	Model string `json:"model,omitempty"`
}

// Confirmation says in a sentence whether a violation was seen again. It is empty if nothing was
// repeated.
func (f CampaignFinding) Confirmation() string {
	r := f.Real
	switch {
	case r == nil:
		return ""
	case r.Repeated == 0:
		return "It was not repeated on a new cluster."
	case r.Confirmed > 0:
		return fmt.Sprintf("Seen again in %d of %d runs of the schedule, each on a new cluster.", r.Confirmed, r.Repeated)
	}
	after := "It came first on its cluster."
	if len(r.After) > 0 {
		after = "It came after: " + seedList(r.After) + "."
	}
	return fmt.Sprintf("Not seen again in %d runs of the schedule, each on a new cluster. %s", r.Repeated, after)
}

func seedList(seeds []uint64) string {
	var all []string
	for _, s := range seeds {
		all = append(all, fmt.Sprint(s))
	}
	return "the schedules of the seeds " + strings.Join(all, ", ")
}

// CoverageRow is a row of the table of coverage: a fault and a transition.
type CoverageRow struct {
	Fault, Transition string
	// Classes is how many classes of requests were reached, and Requests is how many requests. By says
	// how many there were of each class.
	Classes  int
	Requests uint64
	By       string
	// Part is Requests on a logarithmic scale, from 0 to 100.
	Part float64
}

// CoverageRows are the rows that were reached, in their order.
func (r *RealCampaign) CoverageRows() (rows []CoverageRow) {
	for _, c := range r.Coverage { // ordered by fault and transition
		if n := len(rows); n == 0 || rows[n-1].Fault != c.Fault || rows[n-1].Transition != c.Transition {
			rows = append(rows, CoverageRow{Fault: c.Fault, Transition: c.Transition})
		}
		row := &rows[len(rows)-1]
		if row.Classes++; row.Classes > 1 {
			row.By += ", "
		}
		row.By += c.Class + ": " + grouped(int(c.Requests))
		row.Requests += c.Requests
	}
	most := uint64(0)
	for _, row := range rows {
		most = max(most, row.Requests)
	}
	for n := range rows {
		rows[n].Part = logBar(rows[n].Requests, most)
	}
	return rows
}

// toldParts describes each part of a campaign that was continued. It is empty if there is one part.
func (c *Campaign) toldParts() (parts []string) {
	if len(c.Parts) < 2 {
		return nil
	}
	for n, s := range c.Parts {
		parts = append(parts, fmt.Sprintf("part %d: %s in %.0f s, on %s", n+1, counted(int(s.Schedules), "schedule"), s.ElapsedSeconds, s.Machine))
	}
	return parts
}

// SessionSummary says how many clusters were used, and in how many schedules controllers worked.
func (r *RealCampaign) SessionSummary() string {
	most := 0
	for _, s := range r.Sessions {
		most = max(most, s.Schedules)
	}
	text := fmt.Sprintf("%s, with at most %s each", counted(len(r.Sessions), "cluster"), counted(most, "schedule"))
	if r.Controllers {
		text += fmt.Sprintf("; controllers were at work in %s", counted(int(r.ControllersWorked), "schedule"))
	}
	return text
}

// writeReal writes what only a campaign on real servers has.
func (t *terminal) writeReal(c *Campaign) {
	r := c.Real
	fmt.Fprintf(t, "%s, %s, %s: %s schedules in %.0f s on %s\n", plain(r.Subject), plain(strings.Join(r.Versions, ", ")),
		counted(c.Spec.Servers, "apiserver"),
		grouped(int(c.Schedules)), c.ElapsedSeconds, r.SessionSummary())
	fmt.Fprintf(t, "%.1f s for a schedule, of which %.1f s to reset the cluster", r.ScheduleSeconds, r.ResetSeconds)
	if r.AloneSeconds > 0 && r.ScheduleSeconds > 0 {
		fmt.Fprintf(t, "; by itself a schedule takes %.1f times as long", r.AloneSeconds/r.ScheduleSeconds)
	}
	fmt.Fprintf(t, "\n%s requests judged, %s of them passed on; %s of %s cells of coverage reached\n", grouped(int(r.Operations)),
		grouped(int(r.PassedOn)),
		grouped(len(r.Coverage)), grouped(r.Axes.Cells()))
	for _, part := range c.toldParts() {
		fmt.Fprintf(t, "  %s\n", plain(part))
	}
	for i, s := range r.Sessions {
		fmt.Fprintf(t, "  cluster %d: %s; %s\n", i+1, counted(s.Schedules, "schedule"), plain(s.Ended))
	}
	for _, gap := range r.Gaps {
		fmt.Fprintf(t, "the model does not know: %s\n", plain(gap))
	}
}

// writeCoverage writes the table of coverage.
func writeCoverage(w io.Writer, r *RealCampaign) {
	fmt.Fprintf(w, "\n%-20s %-18s %8s %10s\n", "fault", "transition", "classes", "requests")
	for _, row := range r.CoverageRows() {
		fmt.Fprintf(w, "%-20s %-18s %8d %10s\n", plain(row.Fault), plain(row.Transition), row.Classes, grouped(int(row.Requests)))
	}
}
