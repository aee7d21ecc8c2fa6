package reports

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

var sample = flag.String("sample", "", "directory to write a report of realistic size to, for looking at")

// small is the report of smallRun, with what server b logged when it gave its wrong answer.
func small() RunReport {
	r := reportOf(smallRun(), smallVerdicts(), Options{Version: "v0.1.0", Findings: findings.All()})
	logs := map[string]string{"b": klog("I", 0.1, 0) + "started\n" + klog("E", 12.1, 0) + "\"no peer <a> can serve it\"\n"}
	err := r.CollectLogs(func(name string) (io.ReadCloser, error) {
		if text, ok := logs[name]; ok {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return nil, fs.ErrNotExist
	})
	if err != nil {
		panic(err)
	}
	return r
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(io.Writer, RunReport) error
	}{
		{JSONFile, writeIndented[RunReport]},
		{JUnitFile, WriteJUnit},
		{HTMLFile, WriteHTML},
		{"summary.txt", func(w io.Writer, r RunReport) error { return WriteSummary(w, r, SummaryOptions{Dir: "_out"}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := c.write(&got, small()); err != nil {
				t.Fatal(err)
			}
			golden.Hold(t, filepath.Join("testdata", c.name), got.String())
		})
	}
}

// TestBigRun shows that a run of ordinary size gives a page that is small enough for a mail. It
// also writes the page out for people.
func TestBigRun(t *testing.T) {
	h := bigRun()
	r := reportOf(h, invariant.Judge(h), Options{Version: "v0.1.0"})
	if *sample != "" {
		if err := WriteAll(*sample, r); err != nil {
			t.Fatal(err)
		}
		if err := WriteSummary(os.Stdout, r, SummaryOptions{Dir: *sample}); err != nil {
			t.Fatal(err)
		}
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	if limit := 1 << 20; page.Len() > limit {
		t.Errorf("the page of a run of %d operations has %d bytes, want at most %d", len(h.Operations), page.Len(), limit)
	}
}

// hugeRun has so much of everything that a page without bounds would have hundreds of megabytes: a
// million requests to sixty servers, and thousands of steps, faults and restarts.
func hugeRun(requests int) *history.History {
	h := bigRun()
	h.Operations, h.Run.Servers = nil, nil
	for n := range 60 {
		name := fmt.Sprintf("server-%d", n)
		h.Run.Servers = append(h.Run.Servers, history.Server{Name: name, Version: older, Args: []string{"--flag=" + strings.Repeat("x", 200)}})
		for i := range 300 {
			h.Lifecycle = append(h.Lifecycle,
				history.Lifecycle{Server: name, Incarnation: i + 1, Version: older, State: history.StateStarting, At: at(float64(i))},
				history.Lifecycle{Server: name, Incarnation: i + 1, Version: older, State: history.StateReady, At: at(float64(i) + 0.5)})
			h.SlowProbes = append(h.SlowProbes, history.SlowProbe{Server: name, Start: at(float64(i)), End: at(float64(i) + 0.1)})
		}
	}
	h.End.At = at(300)
	for n := range 3000 {
		t := float64(n) / 10
		h.Steps = append(h.Steps, history.Step{Index: n, Sentence: "restart a server of many", Start: at(t), End: at(t + 0.1), Disturbs: true})
		h.Faults = append(h.Faults, history.Fault{ID: n + 10, Kind: "cut", From: fmt.Sprintf("server-%d", n%60), To: "server-1", Start: at(t),
			End: at(t + 0.05)})
	}
	for n := range requests {
		o := history.Operation{ID: fmt.Sprintf("op-%d", n), Start: at(300 * float64(n) / float64(requests)),
			Sent: &history.Sent{Server: fmt.Sprintf("server-%d", n%60), Verb: "list", GVR: []history.GVR{configMaps, trustBundles}[n%2],
				Path: "/api"},
			Received: &history.Received{Status: []int{200, 200, 503, 404, 200}[n%5]}}
		o.End = o.Start + history.Time(n%7)*1e6
		h.Operations = append(h.Operations, o)
	}
	return h
}

// TestHugeRunGivesABoundedPage shows that nothing on the page grows with the history without a
// bound. The number of requests makes no difference beyond that of the buckets.
func TestHugeRunGivesABoundedPage(t *testing.T) {
	h := hugeRun(20_000)
	var verdicts []invariant.Verdict
	for n := range 8 {
		v := invariant.Verdict{Name: fmt.Sprintf("X%d", n), Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: 64,
			Kinds: 500}
		for i := range invariant.MaxEvidence {
			v.Wrong = append(v.Wrong, &h.Operations[i*300])
			v.Evidence = append(v.Evidence, invariant.Evidence{
				Sentence: "It is wrong.", Count: 1, First: at(float64(i)), Last: at(float64(i + 9)), Asked: h.Operations[i].Server,
				Signature:  invariant.Signature{Mechanism: invariant.MechanismResource, Wrong: fmt.Sprint(n, i)},
				Operations: []history.Operation{h.Operations[i*300]},
			})
		}
		verdicts = append(verdicts, v)
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, reportOf(h, verdicts, Options{Findings: findings.Catalogue{}})); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", page.Len())
	if limit := 3 << 20; page.Len() > limit {
		t.Errorf("the page has %d bytes, want at most %d", page.Len(), limit)
	}
	for _, want := range []string{"more servers without a lane", "more steps in", "more faults in", "more incarnations in", "more kinds"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
