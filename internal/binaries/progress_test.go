package binaries

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestABuildShowsItsEstimate(t *testing.T) {
	for _, bar := range []bool{false, true} {
		text := &lines{}
		p := progress{mu: new(sync.Mutex), w: text, ref: Ref{KubeAPIServer, testVersion}, every: time.Millisecond, bar: bar}
		done := p.during("building", 4*time.Minute, nil)
		const line, drawn = "kube-apiserver v1.36.3: still building, 0s of about 4 minutes\n", "kube-apiserver v1.36.3 [....."
		select {
		case <-text.has(line):
		case <-text.has(drawn):
		}
		done()
		got := text.String()
		if !strings.Contains(got, "kube-apiserver v1.36.3: building, about 4 minutes\n") {
			t.Errorf("bar %v: the first line is not in %q", bar, got)
		}
		if strings.Contains(got, line) == bar || strings.Contains(got, drawn) != bar || strings.HasSuffix(got, eraseLine) != bar {
			t.Errorf("bar %v: got %q", bar, got)
		}
	}
}

// A task without an estimate has lines, on a terminal too.
func TestATaskWithoutAnEstimateHasLines(t *testing.T) {
	text := &lines{}
	p := progress{mu: new(sync.Mutex), w: text, ref: Ref{Etcd, DefaultEtcd}, every: time.Millisecond, bar: true}
	done := p.during("downloading", 0, func() string { return "1.0 MB" })
	<-text.has(eraseLine + "etcd v3.6.8: still downloading, 0s so far, 1.0 MB\n")
	done()
	if got := text.String(); strings.Contains(got, "[.") {
		t.Errorf("a bar: %q", got)
	}
}

func TestDrawBar(t *testing.T) {
	ref := Ref{KubeAPIServer, testVersion}
	for elapsed, want := range map[time.Duration]string{
		0:                "kube-apiserver v1.36.3 [..............................] 0s of about 2.5 minutes",
		75 * time.Second: "kube-apiserver v1.36.3 [###############...............] 1m15s of about 2.5 minutes",
		5 * time.Minute:  "kube-apiserver v1.36.3 [##############################] 5m0s of about 2.5 minutes",
	} {
		if got := drawBar(ref, elapsed, 150*time.Second); got != want {
			t.Errorf("after %s: %s, want %s", elapsed, got, want)
		}
	}
	if got := Rounded(19500 * time.Millisecond); got != "20 seconds" {
		t.Errorf("got %s", got)
	}
}
