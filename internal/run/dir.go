package run

import (
	"cmp"
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
	"github.com/skewproof/skewproof/reports"
)

// Dir is the directory of one run: its manifest, history, logs and reports.
type Dir string

// File returns the path of a file of that name.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// History returns the path of the history.
func (d Dir) History() string { return d.File("history.jsonl") }

// TestResults returns the path of the results that Kubernetes' own tests left, in JUnit XML.
func (d Dir) TestResults() string { return d.files().TestResults() }

func (d Dir) manifest() string { return d.File("run.json") }
func (d Dir) pid() string      { return d.File("sandbox.pid") }
func (d Dir) scratch() string  { return d.File("scratch") }
func (d Dir) logs() string     { return d.File("logs") }

func (d Dir) files() local.Files {
	return local.Files{Keys: filepath.Join(d.scratch(), "keys"), Data: filepath.Join(d.scratch(), "etcd"), Logs: d.logs()}
}

// manifest is the content of run.json: everything that the sandboxed half of a run needs, and facts
// for later readers.
type manifest struct {
	Run  history.Run   `json:"run"`
	Plan scenario.Plan `json:"plan"`
	local.Programs
	Keep   bool `json:"keep,omitempty"`
	NoLoad bool `json:"noLoad,omitempty"`
	At     *int `json:"at,omitempty"` // see [Spec]
	// Want is set if only a recording of the servers is wanted.
	Want *wanted `json:"want,omitempty"`
}

// FreshDir makes a directory for output, or checks that it is empty, and returns its absolute path.
// what says in the plural what the directory is for, such as "runs".
func FreshDir(dir, what string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("output directory %s: %w", dir, err)
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", fmt.Errorf("create output directory %s: %w; choose another with --out", dir, err)
	}
	entries, err := os.ReadDir(absolute)
	if err != nil {
		return "", fmt.Errorf("output directory %s: %w", dir, err)
	}
	if len(entries) > 0 {
		return "", Usagef("output directory %s is not empty: it would mix two %s; choose another with --out, or remove it", dir, what)
	}
	return absolute, nil
}

// NewDir creates the directory of a run, or checks that it is empty. If out is empty, the directory
// is [DefaultOut] of the name.
func NewDir(out, name string) (Dir, error) {
	out = cmp.Or(out, DefaultOut(name))
	absolute, err := FreshDir(out, "runs")
	if err != nil {
		return "", err
	}
	d := Dir(absolute)
	for _, sub := range []string{d.scratch(), d.logs()} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return "", fmt.Errorf("write to output directory %s: %w; choose another with --out", out, err)
		}
	}
	return d, nil
}

// DefaultOut returns the directory for output if the user names none: below _out, with the time.
func DefaultOut(name string) string {
	return filepath.Join("_out", name+"-"+time.Now().Format("20060102-150405"))
}

// OpenDir opens the directory of a finished run.
func OpenDir(dir string) (Dir, error) {
	d := Dir(dir)
	if err := d.isDirectory(); err != nil {
		return "", err
	}
	switch _, err := os.Stat(d.History()); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s holds no run: there is no history.jsonl; give the directory that 'skewproof run --out' wrote", dir)
	case err != nil:
		return "", fmt.Errorf("open run %s: %w", dir, err)
	}
	return d, nil
}

// OpenDirs opens the directory of a finished run, or all such directories below that of a suite, in
// the order of their paths. It leaves control runs out.
func OpenDirs(dir string) ([]Dir, error) {
	if _, err := os.Stat(Dir(dir).History()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		d, err := OpenDir(dir)
		return []Dir{d}, err
	}
	var all []Dir
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("look for runs: %w", err)
		case entry.IsDir() && entry.Name() == reports.ControlDir && path != dir:
			return filepath.SkipDir
		case !entry.IsDir() && path == Dir(filepath.Dir(path)).History():
			all = append(all, Dir(filepath.Dir(path)))
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		_, err = OpenDir(dir) // its error says why there is none
	}
	return all, err
}

// isDirectory refuses a file in the place of the directory.
func (d Dir) isDirectory() error {
	if info, err := os.Stat(string(d)); err == nil && !info.IsDir() {
		return fmt.Errorf("open run: %s is a file; give the directory that it is in", d)
	}
	return nil
}

func (d Dir) writeManifest(m manifest) error { return d.writeJSON(d.manifest(), m) }

// writeJSON writes a document into a file of the directory.
func (d Dir) writeJSON(path string, document any) error {
	content, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		_ = os.Remove(path) // a half-written document must not look complete
		return fmt.Errorf("write to output directory: %w; free some space, or choose another directory with --out", err)
	}
	return nil
}

func (d Dir) readManifest() (manifest, error) {
	content, err := os.ReadFile(d.manifest())
	if err != nil {
		return manifest{}, err
	}
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return manifest{}, fmt.Errorf("read %s: %w", d.manifest(), err)
	}
	return m, nil
}

// createHistory creates the file of the history. The file must not exist yet, because no run
// overwrites another.
func (d Dir) createHistory() (*os.File, error) {
	file, err := os.OpenFile(d.History(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create the history: %w", err)
	}
	return file, nil
}

// SaveHistory writes the history of a finished run. If it cannot write the whole history, it
// removes the file, because the run can be repeated.
func (d Dir) SaveHistory(h *history.History) (err error) {
	file, err := d.createHistory()
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("%w; free some space, or choose another directory with --out", err), os.Remove(d.History()))
		}
	}()
	return history.Write(file, h)
}

// Tidy removes files that only an active run needs, and the directory of logs if it is empty.
func (d Dir) Tidy() {
	_ = os.RemoveAll(d.scratch()) // an empty mount point after the sandbox has ended
	_ = os.Remove(d.pid())
	d.unlink() // removes the socket of a run that was killed
	_ = os.Remove(d.logs())
}

// discard removes a directory in which nothing was run. It leaves a directory that has other
// content.
func (d Dir) discard() {
	d.Tidy()
	_ = os.Remove(string(d))
}
