package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// ReproSchema names the layout of a repro file. Readers refuse any other.
const ReproSchema = "skewproof/repro/v1alpha2"

// Repro is a run that broke an invariant, with all that is needed to run it again: the same case on the same tape gives the same trace.
type Repro struct {
	Schema string `json:"schema"`
	// Commit is that of the skewproof that wrote the file, "" if it was not built from a repository.
	Commit string `json:"commit,omitempty"`
	Spec   Spec   `json:"spec"`
	// Seed is what the case was generated from, before it was shrunk.
	Seed uint64 `json:"seed"`
	// Invariant is what is broken, Cause how, as in the verdict's evidence, and Sentence the evidence in full.
	Invariant string `json:"invariant"`
	Cause     string `json:"cause"`
	Sentence  string `json:"sentence"`
	// Case and Tape are the run.
	Case sim.Case            `json:"case"`
	Tape map[string][]uint32 `json:"tape,omitempty"`
	// Hash is of the trace, in hexadecimal.
	Hash string `json:"hash"`
}

// Bounds are the times that invariants allow in the simulator: those of real runs.
var Bounds = history.DefaultBounds

// Replay runs the file and judges what came of it. trace keeps the trace.
func (r *Repro) Replay(trace bool) (*sim.Result, []invariant.Verdict, error) {
	setup, err := r.Spec.Setup()
	if err != nil {
		return nil, nil, err
	}
	s := sim.New(setup)
	defer s.Close()
	result, err := s.Run(&r.Case, tape.Of(r.records()), sim.Options{Trace: trace, Run: r.run()})
	if err != nil {
		return nil, nil, err
	}
	return result, invariant.Judge(result.History), nil
}

func (r *Repro) records() [tape.Streams][]uint32 {
	var all [tape.Streams][]uint32
	for s := range tape.Streams {
		all[s] = r.Tape[s.String()]
	}
	return all
}

// streams are those of a tape.
func streams() []tape.Stream {
	all := make([]tape.Stream, tape.Streams)
	for i := range all {
		all[i] = tape.Stream(i)
	}
	return all
}

// run is what the history of a repro begins with.
func (r *Repro) run() history.Run {
	run := r.Spec.history(r.Seed)
	run.Scenario, run.Sentence, run.About = "replay", r.Sentence, []string{r.Invariant}
	return run
}

// history is what the history of a run of the spec begins with.
func (s Spec) history(seed uint64) history.Run {
	return history.Run{
		Schema: history.SchemaVersion, Scenario: "search", Backend: "sim", Subject: s.Policy, From: s.From, To: s.To, Seed: seed, Bounds: Bounds,
	}
}

// HashText is a trace's hash as it stands in files.
func HashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// maxRepro bounds a file that is read, in MiB: a case has a few hundred steps and requests at most.
const maxRepro = 16

// ReadRepro reads a file and checks that it can be run.
func ReadRepro(path string) (*Repro, error) {
	return readFile("repro file", path, decodeRepro)
}

func decodeRepro(from io.Reader) (*Repro, error) {
	body, err := readBounded(from, maxRepro)
	if err != nil {
		return nil, err
	}
	var file struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(body, &file); err != nil {
		return nil, fmt.Errorf("it is no repro file: %w", err)
	}
	if file.Schema != ReproSchema { // before the rest, which another schema may call otherwise
		return nil, fmt.Errorf("its schema is %q; this skewproof reads %q: replay it with the skewproof of its commit, or search anew", file.Schema, ReproSchema)
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
	for name := range r.Tape {
		if !slices.ContainsFunc(streams(), func(s tape.Stream) bool { return s.String() == name }) {
			return nil, fmt.Errorf("its tape has a stream %q, which there is not", name)
		}
	}
	if _, err := strconv.ParseUint(r.Hash, 16, 64); err != nil {
		return nil, fmt.Errorf("its trace hash %q is no hexadecimal number", r.Hash)
	}
	if _, err := r.Spec.Setup(); err != nil {
		return nil, err
	}
	return r, r.Case.Validate()
}

// Encode writes the file's content.
func (r *Repro) Encode() ([]byte, error) {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode a repro: %w", err)
	}
	return append(body, '\n'), nil
}
