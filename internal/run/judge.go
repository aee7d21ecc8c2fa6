package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// Console is where a command shows its results (Out) and its progress (Progress).
type Console struct {
	Out, Progress io.Writer
	// Color is true if Out is a terminal.
	Color bool
	// Wide is [reports.SummaryOptions.Wide].
	Wide bool
}

// Status returns a function that prints a line to Progress, with the time since Status was called.
// Several goroutines may call it at the same time.
func (c Console) Status() func(format string, args ...any) {
	start := time.Now()
	var line sync.Mutex
	return func(format string, args ...any) {
		line.Lock()
		defer line.Unlock()
		_, _ = fmt.Fprintf(c.Progress, "%6.1fs  %s\n", time.Since(start).Seconds(), reports.Printable(fmt.Sprintf(format, args...)))
	}
}

// Show shows a result by calling write. If saved is not nil, the result could not be saved in dir.
// Show still shows it, because it may have taken hours to get the result.
func (c Console) Show(dir string, saved error, write func(reports.SummaryOptions) error) error {
	if saved != nil {
		dir = ""
	}
	if err := write(reports.SummaryOptions{Dir: dir, Color: c.Color, Wide: c.Wide}); err != nil {
		return errors.Join(err, saved)
	}
	if saved != nil {
		return fmt.Errorf("the result above could not be saved: %w", saved)
	}
	return nil
}

// KnownOnly is a [Judging.Known] that names no file.
const KnownOnly = "true"

// Judging says how to judge a history. The zero value counts the demands of KEP-4020 and excuses
// nothing.
type Judging struct {
	// Strict and Known are as in [Spec].
	Strict bool
	Known  string
}

// Findings returns the findings that can explain violations of the subject.
func (j Judging) Findings(subject string) (findings.Catalogue, error) {
	known := findings.For(subject)
	if j.Known == "" || j.Known == KnownOnly {
		return known, nil
	}
	own, err := findings.ReadFile(j.Known)
	return append(slices.Clip(known), own...), err
}

// Judge judges the history of a run, writes the reports and shows the summary. It returns the
// report with the verdict even if the report could not be written.
func (d Dir) Judge(j Judging, c Console) (reports.RunReport, error) {
	h, err := history.ReadFile(d.History())
	if err != nil {
		return reports.RunReport{}, err
	}
	return d.judgeHistory(h, j, c)
}

func (d Dir) judgeHistory(h *history.History, j Judging, c Console) (reports.RunReport, error) {
	known, err := j.Findings(h.Run.Subject)
	if err != nil {
		return reports.RunReport{}, err
	}
	facts := invariant.NewFacts(h)
	report := reports.New(facts, facts.Judge(), reports.Options{Version: Version(), Strict: j.Strict, Findings: known, Known: j.Known != ""})
	open := func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(d.logs(), name+".log")) }
	if err := report.CollectLogs(open); err != nil {
		return report, errors.Join(err, d.Render(report, c))
	}
	return report, d.Render(report, c)
}

// Render writes the reports of a judged run and shows the summary.
func (d Dir) Render(report reports.RunReport, c Console) error {
	return c.Show(string(d), reports.WriteAll(string(d), report), func(shown reports.SummaryOptions) error {
		return reports.WriteSummary(c.Out, report, shown)
	})
}

// judge judges the history in memory, or the file if kept is nil. cut says why the run was not
// carried out completely, or is nil. A run that was cut short may show a violation, but it never
// passes. If it shows no violation, the error says why it was cut short, unless the user stopped
// it.
func (d Dir) judge(kept *history.History, j Judging, c Console, cut error) (reports.RunReport, error) {
	stopped := errors.Is(cut, engine.ErrStopped)
	if recorded, err := os.Stat(d.History()); cut != nil && (err != nil || recorded.Size() == 0) {
		if stopped {
			return reports.RunReport{}, errInterrupted
		}
		return reports.RunReport{}, fmt.Errorf("the run did not get as far as a history: %w", cut)
	}
	judge := d.Judge
	if kept != nil {
		judge = func(j Judging, c Console) (reports.RunReport, error) { return d.judgeHistory(kept, j, c) }
	}
	report, err := judge(j, c)
	if stopped {
		fmt.Fprintf(c.Progress, "skewproof: %s; the report covers what was recorded until then, and is no pass\n", reports.Printable(cut.Error()))
	}
	if err == nil && (cut == nil || stopped || report.Standing().Violated) {
		return report, nil
	}
	return reports.RunReport{}, errors.Join(cut, err)
}

// Machine describes the machine of the run, as far as it matters to a reader of the report.
func Machine() []string {
	facts := []string{fmt.Sprintf("%d CPUs", runtime.NumCPU())}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		facts = append(facts, "Linux "+unix.ByteSliceToString(uts.Release[:])+" "+unix.ByteSliceToString(uts.Machine[:]))
	}
	return facts
}
