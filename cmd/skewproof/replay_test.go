package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/replay"
	"github.com/skewproof/skewproof/sim/search"
)

var onlyNewer = history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}

// forgotten is a repro file about a server that forgets another server.
func forgotten(t *testing.T) *search.Repro {
	t.Helper()
	r := &search.Repro{
		Schema: search.ReproSchema, Commit: "0123456789ab", Seed: 7, Invariant: "NoFalseNotFound", Cause: "404 though a served it, out of reach",
		Spec: search.Spec{Policy: "upstream-1.37", From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 1},
		Case: sim.Case{
			Servers:  []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}, {Name: "c", Version: "v1.36.3"}},
			Steps:    []scenario.Step{cutOff("b", "a"), {Action: scenario.Restart, Server: "c"}},
			Requests: []sim.Request{{Step: 2, After: 10 * time.Second, Server: "b", Request: workload.Request{Verb: "list", GVR: onlyNewer}}},
		},
	}
	result, verdicts, err := r.Replay(false)
	if err != nil {
		t.Fatal(err)
	}
	r.Hash = search.HashText(result.Hash)
	r.Signature = replay.VerdictOn(verdicts, r).Evidence[0].Signature
	return r
}

func cutOff(from, to string) scenario.Step {
	return scenario.Step{Action: scenario.Inject, Label: from + to, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
}

func writeRepro(t *testing.T, r *search.Repro) string {
	t.Helper()
	content, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "repro.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayTellsWhatHappened(t *testing.T) {
	out, err := call(t, "replay", writeRepro(t, forgotten(t)))
	if codeOf(t, err) != exitFail {
		t.Errorf("exit code %d, want %d", codeOf(t, err), exitFail)
	}
	at := 0
	for _, want := range []string{ // in this order
		"Policy upstream-1.37, 3 servers: a v1.37.1, b v1.36.3, c v1.36.3. Seed 7.", "every server is ready", "cut, b→a", "restart c (done after",
		"VIOLATION: b was asked at", "in the same way as in the file: 404 though a served it, out of reach", "The trace is that of the file",
	} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("it does not say %q, there:\n%s", want, out)
		}
		at += i
	}
}

func TestReplaySaysWhatHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*search.Repro)
		code   int
		want   string
	}{
		"the code": {
			func(r *search.Repro) { r.Hash = "00000000000000ff" }, exitFail,
			"in the file 00000000000000ff): code or policy have changed since the file was written, by skewproof 0123456789ab",
		},
		"the cause": {
			func(r *search.Repro) { r.Signature.Answer = "500" }, exitFail,
			"in another way (404 though a served it, out of reach) than in the file",
		},
		"what it is about": {func(r *search.Repro) { r.Invariant = "ListsAgree" }, exitInconclusive, "ListsAgree"},
		"it was corrected": {func(r *search.Repro) { r.Spec.Policy = "reference" }, exitPass, "NoFalseNotFound is not violated."},
	} {
		t.Run(name, func(t *testing.T) {
			r := forgotten(t)
			c.change(r)
			out, err := call(t, "replay", writeRepro(t, r))
			if codeOf(t, err) != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d; want %q in\n%s", codeOf(t, err), c.code, c.want, out)
			}
		})
	}
}

func TestReplayWritesReportsAndTrace(t *testing.T) {
	dir := t.TempDir()
	file := writeRepro(t, forgotten(t))
	for _, name := range []string{"first", "second"} {
		_, err := call(t, "replay", file, "--out", filepath.Join(dir, name), "--trace", filepath.Join(dir, name+".trace"))
		if codeOf(t, err) != exitFail {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"first/history.jsonl", "first.trace"} {
		first, err := os.ReadFile(filepath.Join(dir, file))
		second, err2 := os.ReadFile(filepath.Join(dir, strings.Replace(file, "first", "second", 1)))
		if err != nil || err2 != nil || len(first) == 0 || !bytes.Equal(first, second) {
			t.Errorf("%s: %d and %d bytes that are not the same, errors %v, %v", file, len(first), len(second), err, err2)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "first", "report.html")); err != nil {
		t.Error(err)
	}
}

func TestReplayRefuses(t *testing.T) {
	file := writeRepro(t, forgotten(t))
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"schema":"skewproof/repro/v1alpha4","invariant":"NoLoop"`), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := forgotten(t)
	changed.Spec.Changes = []string{"Knowledge.KeepLastGood=true"}
	alpha := forgotten(t)
	alpha.Spec.Policy = "alpha-1.28"
	many := forgotten(t)
	for n := len(many.Case.Servers); n < 64; n++ {
		many.Case.Servers = append(many.Case.Servers, scenario.Server{Name: fmt.Sprint("s", n), Version: "v1.36.3"})
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file":                  {[]string{file + "-missing"}, exitNotRun, "no such file"},
		"a broken file":            {[]string{broken}, exitNotRun, "not a repro file"},
		"an unknown backend":       {[]string{file, "--backend", "moon"}, exitUsage, "want sim, local or kind"},
		"leniency in sim":          {[]string{file, "--lenient"}, exitUsage, "--lenient means nothing with --backend sim"},
		"load in sim":              {[]string{file, "--qps", "3"}, exitUsage, "--qps means nothing"},
		"a trace of real life":     {[]string{file, "--backend", "local", "--trace", "x"}, exitUsage, "--trace means nothing with --backend local"},
		"switches of real servers": {[]string{writeRepro(t, changed), "--backend", "local"}, exitUsage, "change Knowledge.KeepLastGood=true"},
		"what no subject does":     {[]string{writeRepro(t, alpha), "--backend", "local", "--lenient"}, exitUsage, "policy alpha-1.28"},
		"more than there is room":  {[]string{writeRepro(t, many), "--backend", "local", "--lenient"}, exitUsage, "it has 64 servers, and there is room for 63"},
		"no load":                  {[]string{file, "--backend", "local", "--qps", "0"}, exitUsage, "--qps 0"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := call(t, append([]string{"replay"}, c.args...)...)
			if codeOf(t, err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, want %d; want %q in %v\n%s", codeOf(t, err), c.code, c.want, err, out)
			}
		})
	}
}

// The end-to-end tests replay these files on real processes. The files must be readable and show
// the violation that they are named after.
func TestTheFilesOfTheEndToEndTestsStillShowWhatTheyAreAbout(t *testing.T) {
	files, err := filepath.Glob("../../internal/e2e/testdata/repro/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		if out, err := call(t, "replay", file); codeOf(t, err) != exitFail || !strings.Contains(out, "in the same way as in the file") {
			t.Errorf("%s:\n%s", file, out)
		}
	}
}

func TestTheReproducingCommandOfAReplay(t *testing.T) {
	own, err := binaries.NewRef(binaries.KubeAPIServer, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	f := replayFlags{file: "found.json", lenient: true}
	words := run.Spec{
		Own: &run.Own{Command: f.words()}, Backend: "local", Subject: "builtin", From: "v1.36.3", Etcd: "v3.6.9", QPS: 99.5, Servers: 3,
		Binaries: binaries.Overrides{own: "/opt/patched/kube-apiserver"},
	}.Words()
	command, rest, err := newRoot().Find(words)
	if err != nil || command.Name() != "replay" {
		t.Fatalf("the command is %v, error %v", command, err)
	}
	if err := command.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"backend": "local", "etcd": "v3.6.9", "qps": "99.5", "lenient": "true"} {
		if got := command.Flags().Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
	if got := command.Flags().Lookup("binary").Value.String(); !strings.Contains(got, "/opt/patched/kube-apiserver") || command.Flags().Arg(0) != "found.json" {
		t.Errorf("binary %s, file %q", got, command.Flags().Arg(0))
	}
}
