package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// runDir is the directory of one run: its specification, history, logs and reports.
type runDir string

func (d runDir) file(name string) string { return filepath.Join(string(d), name) }
func (d runDir) history() string         { return d.file("history.jsonl") }
func (d runDir) spec() string            { return d.file("run.json") }
func (d runDir) pid() string             { return d.file("sandbox.pid") }
func (d runDir) scratch() string         { return d.file("scratch") }

func (d runDir) files() local.Files {
	return local.Files{
		Keys: filepath.Join(d.scratch(), "keys"),
		Data: filepath.Join(d.scratch(), "etcd"),
		Logs: d.file("logs"),
	}
}

// spec is all that the sandboxed half of a run needs to know.
type spec struct {
	Run        history.Run       `json:"run"`
	Plan       scenario.Plan     `json:"plan"`
	APIServers map[string]string `json:"apiservers"` // version → path
	Etcd       string            `json:"etcd"`
	Keep       bool              `json:"keep,omitempty"`
}

// freshDir makes a directory for output, or checks that it is empty, and returns its absolute path. what are the runs or reports that it would mix.
func freshDir(dir, what string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", notRun(fmt.Errorf("output directory %s: %w", dir, err))
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", notRun(fmt.Errorf("create output directory %s: %w; choose another with --out", dir, err))
	}
	entries, err := os.ReadDir(absolute)
	if err != nil {
		return "", notRun(fmt.Errorf("output directory %s: %w", dir, err))
	}
	if len(entries) > 0 {
		return "", usage("output directory %s is not empty: it would mix two %s; choose another with --out, or remove it", dir, what)
	}
	return absolute, nil
}

// newRunDir creates out, or checks that it is empty. An empty name means one by scenario, subject and time below _out.
func newRunDir(out, scenario, subject string, now time.Time) (runDir, error) {
	if out == "" {
		out = filepath.Join("_out", fmt.Sprintf("%s-%s-%s", scenario, subject, now.Format("20060102-150405")))
	}
	absolute, err := freshDir(out, "runs")
	if err != nil {
		return "", err
	}
	d := runDir(absolute)
	for _, sub := range []string{d.scratch(), d.files().Logs} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return "", notRun(fmt.Errorf("write to output directory %s: %w; choose another with --out", out, err))
		}
	}
	return d, nil
}

// noFile refuses a file where the directory of a run is wanted.
func noFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("open run: %s is a file; give the directory that it is in", dir)
	}
	return nil
}

// openRunDir checks that dir holds a run.
func openRunDir(dir string) (runDir, error) {
	d := runDir(dir)
	if err := noFile(dir); err != nil {
		return "", notRun(err)
	}
	switch _, err := os.Stat(d.history()); {
	case errors.Is(err, fs.ErrNotExist):
		return "", notRun(fmt.Errorf("%s holds no run: there is no history.jsonl; give the directory that 'skewproof run --out' wrote", dir))
	case err != nil:
		return "", notRun(fmt.Errorf("open run %s: %w", dir, err))
	}
	return d, nil
}

// writeSpec saves the specification for the sandboxed half and for whoever wants to know later.
func (d runDir) writeSpec(s spec) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.spec(), append(content, '\n'), 0o644); err != nil {
		_ = os.Remove(d.spec()) // half of it would be taken for a whole one
		return fmt.Errorf("write to output directory: %w; free some space, or choose another directory with --out", err)
	}
	return nil
}

func (d runDir) readSpec() (spec, error) {
	content, err := os.ReadFile(d.spec())
	if err != nil {
		return spec{}, err
	}
	var s spec
	if err := json.Unmarshal(content, &s); err != nil {
		return spec{}, fmt.Errorf("read %s: %w", d.spec(), err)
	}
	return s, nil
}

// createHistory creates the file of the history, which must not exist yet: no run writes over another.
func (d runDir) createHistory() (*os.File, error) {
	file, err := os.OpenFile(d.history(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create the history: %w", err)
	}
	return file, nil
}

// tidy removes what only a running sandbox needs.
func (d runDir) tidy() {
	_ = os.RemoveAll(d.scratch()) // an empty mount point once the sandbox is gone
	_ = os.Remove(d.pid())
}

// discard removes a directory in which nothing was run.
func (d runDir) discard() {
	d.tidy()
	_ = os.Remove(d.files().Logs)
	_ = os.Remove(string(d)) // stays if it is not ours alone
}
