package reports

import (
	"bytes"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

var sample = flag.String("sample", "", "directory to write a report of realistic size to, for looking at")

// small is the report of smallRun, with what server b logged when it gave its wrong answer.
func small() RunReport {
	r := New(smallRun(), smallVerdicts(), Options{Version: "v0.1.0", Findings: findings.All()})
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
		{JSONFile, WriteJSON},
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
	r := New(h, invariant.Judge(h), Options{Version: "v0.1.0"})
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
