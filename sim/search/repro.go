package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// ReproSchema names the layout of a repro file. Readers refuse any other layout.
const ReproSchema = "skewproof/repro/v1alpha4"

// Repro is a run that violated an invariant. The same case on the same tape gives the same trace.
type Repro struct {
	Schema string `json:"schema"`
	// Commit is the commit of the skewproof that wrote the file; "" if that was not built from a
	// repository.
	Commit string `json:"commit,omitempty"`
	Spec   Spec   `json:"spec"`
	// Seed is the seed from which the case was generated, before it was shrunk.
	Seed uint64 `json:"seed"`
	// Invariant is the violated invariant. Cause is the cause in the verdict's evidence, and
	// Sentence is the whole evidence.
	Invariant string `json:"invariant"`
	Cause     string `json:"cause"`
	Sentence  string `json:"sentence"`
	// Removal is the cause of the violation, found by experiment: the switches of the policy that
	// remove the violation. nil: this was not tried.
	Removal *reports.Removal `json:"removal,omitempty"`
	// Signature is the signature of the violation, by which readers recognise it.
	Signature invariant.Signature `json:"signature"`
	// Case and Tape are the run.
	Case sim.Case            `json:"case"`
	Tape map[string][]uint32 `json:"tape,omitempty"`
	// Hash is the hash of the trace, in hexadecimal.
	Hash string `json:"hash"`
	// Found says where the violation was seen, if it was seen on real servers. Then the case has
	// the steps that were carried out there, and the load of that run.
	Found *Found `json:"found,omitempty"`
}

// Found describes a violation that was seen on real servers.
type Found struct {
	// Subject names whose proxy was tested, and Versions are the versions of the programs.
	Subject  string   `json:"subject"`
	Versions []string `json:"versions"`
	// QPS is the rate of the load, in requests a second.
	QPS float64 `json:"qps"`
	// RealFinding is how it was seen. Its run is relative to the file.
	reports.RealFinding
}

// Bounds are the times that invariants allow in the simulator. They are the bounds of real runs.
var Bounds = history.DefaultBounds

// Replay runs the case on the tape and judges the history. If trace is true, the result keeps the
// trace.
func (r *Repro) Replay(trace bool) (*sim.Result, []invariant.Verdict, error) {
	result, err := r.Run(trace)
	if err != nil {
		return nil, nil, err
	}
	return result, invariant.Judge(result.History), nil
}

// Run runs the case on the tape. If trace is true, the result keeps the trace.
func (r *Repro) Run(trace bool) (*sim.Result, error) {
	s, err := newSimulator(r.Spec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	simulated := Simulated(r.Case)
	return s.Run(&simulated, tape.Of(r.records()), sim.Options{Trace: trace, Run: r.run()})
}

// Simulated returns a case without the steps that only real servers can carry out, because the
// simulator has no controllers. The case that it returns shares memory with c.
func Simulated(c sim.Case) sim.Case {
	if !slices.ContainsFunc(c.Steps, scenario.Step.AboutControllers) {
		return c
	}
	kept := []int{0} // how many of the first i steps stay
	var steps []scenario.Step
	for _, s := range c.Steps {
		if !s.AboutControllers() {
			steps = append(steps, s)
		}
		kept = append(kept, len(steps))
	}
	c.Requests = slices.Clone(c.Requests)
	for i := range c.Requests {
		c.Requests[i].Step = kept[c.Requests[i].Step]
	}
	c.Steps = steps
	return c
}

// records returns the choices of the tape, by stream.
func (r *Repro) records() [tape.Streams][]uint32 {
	var records [tape.Streams][]uint32
	for s := range tape.Streams {
		records[s] = r.Tape[s.String()]
	}
	return records
}

// run returns the beginning of the history of a repro.
func (r *Repro) run() history.Run {
	run := r.Spec.history(r.Seed)
	run.Scenario, run.Sentence, run.About = "replay", r.Sentence, []string{r.Invariant}
	return run
}

// history returns the beginning of the history of a run of the spec.
func (s Spec) history(seed uint64) history.Run {
	return history.Run{
		Schema: history.SchemaVersion, Scenario: "search", Backend: "sim", Subject: s.Policy, From: s.From, To: s.To, Seed: seed, Bounds: Bounds,
	}
}

// HashText returns a trace's hash in the form that files use.
func HashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// maxRepro is the maximum size of a file, in MiB. A case has at most a few hundred steps and
// requests.
const maxRepro = 16

// ReadRepro reads a file and checks that the simulator can run it.
func ReadRepro(path string) (*Repro, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the repro file: %w", err)
	}
	defer func() { _ = f.Close() }()
	r, err := decodeRepro(f)
	if err != nil {
		return nil, fmt.Errorf("read the repro file %s: %w", path, err)
	}
	return r, nil
}

func decodeRepro(from io.Reader) (*Repro, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxRepro<<20+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxRepro<<20 {
		return nil, fmt.Errorf("it is longer than %d MiB", maxRepro)
	}
	var file struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(body, &file); err != nil {
		return nil, fmt.Errorf("it is not a repro file that this skewproof knows: %w", err)
	}
	if file.Schema != ReproSchema { // checked first, because the fields of another schema may have other names
		return nil, fmt.Errorf("its schema is %q; this skewproof reads %q: replay it with the skewproof of its commit, or search anew",
			file.Schema, ReproSchema)
	}
	r := &Repro{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("it is not a repro file that this skewproof knows: %w", err)
	}
	if r.Invariant == "" {
		return nil, errors.New("it names no invariant")
	}
	if _, err := invariantNamed(r.Invariant); err != nil {
		return nil, err
	}
	if err := r.checkRemoval(); err != nil {
		return nil, err
	}
	var streams []string
	for s := range tape.Streams {
		streams = append(streams, s.String())
	}
	for name := range r.Tape { // the order does not matter
		if !slices.Contains(streams, name) {
			return nil, fmt.Errorf("unknown tape stream %q (known: %s)", name, strings.Join(streams, ", "))
		}
	}
	if _, err := strconv.ParseUint(r.Hash, 16, 64); err != nil {
		return nil, fmt.Errorf("its trace hash %q is not a hexadecimal number", r.Hash)
	}
	if _, err := r.Spec.Setup(); err != nil {
		return nil, err
	}
	return r, r.Case.Validate()
}

// checkRemoval refuses an impossible cause: one with changes of switches that do not exist.
func (r *Repro) checkRemoval() error {
	if r.Removal == nil {
		return nil
	}
	for _, set := range r.Removal.Sets {
		if _, _, err := (Spec{Policy: r.Spec.Policy, Changes: set}).Build(); err != nil {
			return fmt.Errorf("what removes its violation: %w", err)
		}
	}
	return r.Removal.Check()
}

// Encode returns the content of the file, for [reports.CampaignFinding.Repro].
func (r *Repro) Encode() ([]byte, error) {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode a repro: %w", err)
	}
	return bytes.TrimSpace(encoded.Bytes()), nil
}

// Story describes a case in lines of text, and counts the steps that break or change the control
// plane.
func Story(c *sim.Case) (lines []string, disturbances int) {
	var servers []string
	for _, s := range c.Servers {
		servers = append(servers, s.Name+" ("+s.Version+")")
	}
	lines = append(lines, "servers "+strings.Join(servers, ", "))
	for i := 0; i <= len(c.Steps); i++ {
		if i > 0 {
			step := c.Steps[i-1]
			lines = append(lines, fmt.Sprintf("%d. %s", i, step.String()))
			if step.Disturbs() {
				disturbances++
			}
		}
		requests := slices.DeleteFunc(slices.Clone(c.Requests), func(r sim.Request) bool { return r.Step != i })
		slices.SortStableFunc(requests, func(a, b sim.Request) int { return int(a.After - b.After) })
		for _, r := range requests {
			lines = append(lines, "   "+asked(r))
		}
	}
	return lines, disturbances
}

// asked describes a request in words.
func asked(r sim.Request) string {
	s := fmt.Sprintf("%s later, ask %s: %s", r.After, r.Server, &r.Request)
	if r.After == 0 {
		s = fmt.Sprintf("at once, ask %s: %s", r.Server, &r.Request)
	}
	if r.User != "" {
		s += ", as " + r.User
	}
	return s
}
