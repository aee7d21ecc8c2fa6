package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// workspace is a directory in the cache in which one binary is fetched. It is on the same file system as the place the
// binary goes to, and always has the same name: what a killed process left in it is removed by the next one.
type workspace struct {
	root string
	name string // of the binary
}

func newWorkspace(dir string, ref Ref) (workspace, error) {
	w := workspace{root: filepath.Join(dir, tmpDir, lockName(ref)), name: string(ref.Component)}
	return w, w.reset()
}

func (w workspace) path(name string) string { return filepath.Join(w.root, name) }
func (w workspace) stage() string           { return w.path("stage") }
func (w workspace) binary() string          { return filepath.Join(w.stage(), w.name) }

// reset makes the workspace empty.
func (w workspace) reset() error {
	return errors.Join(os.RemoveAll(w.root), os.MkdirAll(w.stage(), 0o755))
}

// remove is tried again for a moment: processes that have just been killed may still be creating files.
func (w workspace) remove() {
	for range 20 {
		if os.RemoveAll(w.root) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
