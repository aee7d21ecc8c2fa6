package search

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
)

func decoded(body []byte) (*Repro, error) { return decodeRepro(bytes.NewReader(body)) }

// sample is a repro that the simulator can run.
func sample(t testing.TB) *Repro {
	t.Helper()
	spec := specOf("upstream-1.37", 4)
	return &Repro{
		Schema: ReproSchema, Commit: "devel", Spec: spec, Seed: 7, Invariant: "NoFalseNotFound", Cause: "404", Sentence: "b was asked.", Signature: invariant.Signature{Invariant: "NoFalseNotFound"}, Case: burdened(),
		Tape: map[string][]uint32{"delays": {1, 2, 3}}, Hash: HashText(1),
	}
}

func TestAReproFileIsReadBack(t *testing.T) {
	r := sample(t)
	body, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "repro.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := ReadRepro(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, other) {
		t.Errorf("written\n%s\nread back\n%s", body, other)
	}
}

func TestABrokenReproFileIsRefused(t *testing.T) {
	for what, change := range map[string]func(r *Repro){
		"another schema":       func(r *Repro) { r.Schema = "skewproof/repro/v2" },
		"no invariant":         func(r *Repro) { r.Invariant = "" },
		"an unknown invariant": func(r *Repro) { r.Invariant = "NoSuch" },
		"an unknown stream":    func(r *Repro) { r.Tape["luck"] = nil },
		"no hash":              func(r *Repro) { r.Hash = "x" },
		"unknown policy":       func(r *Repro) { r.Spec.Policy = "mine" },
		"unknown switch":       func(r *Repro) { r.Spec.Changes = []string{"Knowledge.Nothing=true"} },
		"unknown version":      func(r *Repro) { r.Spec.To = "v9.9.9" },
		"unknown server":       func(r *Repro) { r.Case.Requests[0].Server = "z" },
		"impossible step":      func(r *Repro) { r.Case.Steps = r.Case.Steps[11:] },
		"request too late":     func(r *Repro) { r.Case.Requests[0].Step = 99 },
		"no such forgery":      func(r *Repro) { r.Case.Requests[0].Forged = "signature" },
		"request too early":    func(r *Repro) { r.Case.Requests[0].After = -time.Second },
	} {
		r := sample(t)
		change(r)
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decoded(body); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	for _, text := range []string{"", "[]", "{}", `{"schema":"skewproof/repro/v1alpha4","more":1}`, strings.Repeat(" ", maxRepro<<20+1)} {
		if _, err := decoded([]byte(text)); err == nil {
			t.Errorf("%.40q: accepted", text)
		}
	}
	if _, err := ReadRepro(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a file that is not there: accepted")
	}
}

// Another schema may use other names for the same fields. So the error must say what to do, and not
// which field is unknown.
func TestAReproOfAnotherSchemaIsRefusedWithWhatToDo(t *testing.T) {
	old := `{"schema":"skewproof/repro/v1alpha1","invariant":"NoLoop","case":{"requests":[{"forged":true,"denied":true}]}}`
	_, err := decoded([]byte(old))
	if err == nil || !strings.Contains(err.Error(), `its schema is "skewproof/repro/v1alpha1"`) || !strings.Contains(err.Error(), "search anew") {
		t.Errorf("error %v", err)
	}
}

// Every file must either run or be refused. No content may cause a panic or an endless run.
func FuzzReadRepro(f *testing.F) {
	small := sample(f)
	small.Case.Requests = small.Case.Requests[:1] // go test takes long to shrink a large input
	body, err := small.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"schema":"skewproof/repro/v1alpha4","spec":{"policy":"none","from":"v1.36.3","to":"v1.37.1","servers":1,"resources":1},
		"invariant":"NoLoop","case":{"servers":[{"name":"a","version":"v1.36.3"}],"steps":[]},"hash":"0"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decoded(body)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decoded(again); err != nil {
			t.Fatalf("what was accepted is refused when it is written again: %v", err)
		}
	})
}

// The simulator leaves out steps about controllers. Requests stay after the same other steps.
func TestSimulatedCasesHaveNoControllers(t *testing.T) {
	soak := scenario.Step{Action: scenario.Soak, For: time.Second}
	start := scenario.Step{Action: scenario.StartControllers, Version: "v1.36.3", Optional: true}
	c := sim.Case{
		Steps:    []scenario.Step{start, soak, start, {Action: scenario.Restart, Server: "a"}, start},
		Requests: []sim.Request{{Step: 0}, {Step: 1}, {Step: 2}, {Step: 3}, {Step: 4}, {Step: 5}},
	}
	got := Simulated(c)
	want := sim.Case{
		Steps:    []scenario.Step{soak, {Action: scenario.Restart, Server: "a"}},
		Requests: []sim.Request{{Step: 0}, {Step: 0}, {Step: 1}, {Step: 1}, {Step: 2}, {Step: 2}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(c.Steps) != 5 || c.Requests[5].Step != 5 {
		t.Error("it changed the case")
	}
}

// The repro files beside the documents are of this version, and each shows the finding of its name.
func TestReprosInTheDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/repros/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r, err := ReadRepro(file)
		if err != nil {
			t.Fatal(err)
		}
		result, err := r.Run(false)
		if err != nil {
			t.Fatal(err)
		}
		if HashText(result.Hash) != r.Hash {
			t.Errorf("%s: the hash of the trace is %s, and in the file %s", file, HashText(result.Hash), r.Hash)
		}
		f, ok := findings.All().Explain(r.Signature)
		if want := fmt.Sprintf("%03d.json", f.Number); !ok || filepath.Base(file) != want {
			t.Errorf("%s shows finding %d", file, f.Number)
		}
	}
}
