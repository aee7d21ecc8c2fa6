package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// BenchmarkMillion simulates a run of a million requests, and judges it again, each in a separate
// process. It reports the largest resident memory of both and the size of the page:
//
//	go test ./cmd/skewproof -run '^$' -bench Million -benchtime 1x
func BenchmarkMillion(b *testing.B) {
	const most = 1e9 // bytes
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "run")
		simulated := largest(b, "run", "rolling-upgrade", "--backend", "sim", "--subject", "reference", "--qps", "1000", "--soak", "16m", "--out", dir)
		judged := largest(b, "judge", dir)
		report, err := reports.Read(run.Dir(dir).File(reports.JSONFile))
		if err != nil {
			b.Fatal(err)
		}
		page, err := os.Stat(run.Dir(dir).File(reports.HTMLFile))
		if err != nil {
			b.Fatal(err)
		}
		if report.Metadata.Operations < 1_000_000 || simulated > most || judged > most {
			b.Errorf("%d requests took %.0f bytes to simulate and %.0f to judge, want at most %.0f", report.Metadata.Operations, simulated, judged, most)
		}
		b.ReportMetric(simulated/1e6, "MB-run")
		b.ReportMetric(judged/1e6, "MB-judge")
		b.ReportMetric(float64(page.Size())/1e6, "MB-page")
		b.ReportMetric(float64(report.Metadata.Operations), "requests")
	}
}

// largest runs skewproof, which must pass, and returns the most memory that it had, in bytes.
func largest(b *testing.B, words ...string) float64 {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self, words...)
	cmd.Env = append(os.Environ(), programVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("skewproof %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("this system does not say how much memory a process had")
	}
	return float64(usage.Maxrss) * 1024 // Linux counts in KiB
}
