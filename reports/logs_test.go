package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// logged is a report with one violation, 20 s after its start.
func logged() RunReport {
	e := wholeResource("op-1", "", "")
	e.Requests[0].StartSeconds, e.Requests[0].DurationSeconds = 20, 0.5
	return RunReport{
		Metadata: Metadata{StartedAt: started}, Invariants: []Invariant{failing("X", "core", e)},
		Servers: []Server{{Name: "b", Versions: []VersionWindow{{StartSeconds: 1}}}},
	}
}

// klog is the header of a line written that many seconds after the start of the run, by a process
// whose clock is set to another zone.
func klog(severity string, at float64, zone time.Duration) string {
	return severity + started.Add(time.Duration(at*1e9)+zone).Format("0102 15:04:05.000000") + "      22 file.go:1] "
}

func collect(t *testing.T, r *RunReport, logs map[string]string) []LogLine {
	t.Helper()
	err := r.CollectLogs(func(name string) (io.ReadCloser, error) {
		text, ok := logs[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(text)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Invariants[0].Evidence[0].Log
}

func TestLogLinesNearAViolation(t *testing.T) {
	for _, c := range []struct {
		name string
		logs map[string]string
		want []string
	}{
		{"within two seconds", map[string]string{"b": klog("I", 1, 0) + "start\n" + klog("I", 17.9, 0) + "early\n" + klog("I", 18.1, 0) +
			"one\n" +
			klog("E", 22.4, 0) + "two\n" + klog("I", 22.6, 0) + "late\n"}, []string{"one", "two"}},
		{"another time zone", map[string]string{"b": klog("I", 1.2, 19800*time.Second) + "start\n" + klog("I", 20, 19800*time.Second) +
			"in India\n"}, []string{"in India"}},
		{"another format", map[string]string{"b": "time=" + started.Add(20*time.Second).Format(time.RFC3339Nano) +
			" level=WARN msg=no\n"}, []string{"msg=no"}},
		{"JSON", map[string]string{"b": `{"ts":"` + started.Add(20*time.Second).Format(time.RFC3339Nano) + `","msg":"json"}` + "\n"},
			[]string{`"msg":"json"}`}},
		{"lines without a time", map[string]string{"b": "goroutine 1\n\n" + klog("I", 1, 0) + "start\n\tat file\n"}, nil},
		{"the log of another server", map[string]string{"c": klog("I", 20, 0) + "c\n"}, nil},
		{"no logs", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := logged()
			var got []string
			for _, l := range collect(t, &r, c.logs) {
				got = append(got, l.Text[strings.LastIndexAny(l.Text, "] ,")+1:])
			}
			want := slices.Clone(c.want)
			for n, w := range want {
				want[n] = w[strings.LastIndexAny(w, "] ,")+1:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("lines %q, want %q", got, want)
			}
		})
	}
}

// A run over New Year: klog does not write the year.
func TestLogLinesOverNewYear(t *testing.T) {
	r := logged()
	r.Metadata.StartedAt = time.Date(2025, time.December, 31, 23, 59, 50, 0, time.UTC)
	lines := collect(t, &r, map[string]string{"b": "I1231 23:59:51.000000 22 f.go:1] start\nI0101 00:00:10.000000 22 f.go:1] happy\n"})
	if len(lines) != 1 || lines[0].AtSeconds != 20 {
		t.Errorf("lines %+v, want one at 20 s", lines)
	}
}

// A server may write as much as it likes, and lines of any length: the report stays small, and
// keeps warnings and errors.
func TestLogLinesAreBounded(t *testing.T) {
	r := logged()
	var b strings.Builder
	b.WriteString(klog("I", 1, 0) + "start\n")
	for n := range 5000 {
		b.WriteString(klog("I", 20.2, 0) + fmt.Sprint(n) + strings.Repeat("x", 70_000*(n%500/499)) + "\n")
	}
	text := strings.Replace(b.String(), klog("I", 20.2, 0)+"7\n", klog("E", 18.5, 0)+"important\n", 1)
	lines := collect(t, &r, map[string]string{"b": text})
	if len(lines) != mostLogLines || r.Invariants[0].Evidence[0].LogTotal != 5000 || !strings.HasSuffix(lines[0].Text, "important") {
		t.Errorf("%d lines of %d, the first %q", len(lines), r.Invariants[0].Evidence[0].LogTotal, lines[0].Text)
	}
	for _, l := range lines {
		if n := len([]rune(l.Text)); n > longestLogLine {
			t.Errorf("a line has %d characters", n)
		}
	}
}

func TestLogThatCannotBeRead(t *testing.T) {
	r := logged()
	err := r.CollectLogs(func(string) (io.ReadCloser, error) {
		return io.NopCloser(iotest.ErrReader(errors.New("the disk is gone"))), nil
	})
	if err == nil || !strings.Contains(err.Error(), `read the log "b": the disk is gone`) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzLogTimes(f *testing.F) {
	for _, line := range []string{klog("I", 1, 0), "time=2026-11-25T02:31:09.041Z level=INFO", "I9999 99:99:99.9 x", `{"ts":"2026-02-31T02:31:09Z"}`, "\xff"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		z := logZone{started: started}
		first, ok := z.timeOf(line)
		again, okAgain := z.timeOf(line)
		if ok != okAgain || !first.Equal(again) {
			t.Errorf("%q: %v, then %v", line, first, again)
		}
	})
}
