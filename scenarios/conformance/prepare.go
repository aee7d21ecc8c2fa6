package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// preparation is what the process that prepares tells those that run specs.
type preparation struct{ Program, Out string }

// prepare makes the output directory and gets all programs, so that no spec pays for that.
func (o *Options) prepare(ctx context.Context) (err error) {
	if o.Out == "" {
		if o.Out, err = os.MkdirTemp("", "skewproof-conformance-"); err != nil {
			return fmt.Errorf("create an output directory: %w; choose one with --out", err)
		}
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return fmt.Errorf("output directory %s: %w", o.Out, err)
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("create output directory %s: %w; choose another with --out", o.Out, err)
	}
	// A run refuses a directory that holds one already, and what is refused is shown as skipped.
	switch entries, err := os.ReadDir(o.Out); {
	case err != nil:
		return fmt.Errorf("output directory %s: %w", o.Out, err)
	case len(entries) > 0:
		return fmt.Errorf("output directory %s is not empty: it would mix two reports; choose another with --out, or remove it", o.Out)
	}
	if o.Program == "" {
		o.Program = filepath.Join(o.Out, "skewproof")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.Program, "github.com/skewproof/skewproof/cmd/skewproof")
		if err := say(build, "build skewproof"); err != nil {
			return err
		}
	}
	if o.Program, err = filepath.Abs(o.Program); err != nil || o.Backend != scenario.BackendLocal {
		return err
	}
	p := o.parameters(scenario.Scenario{})
	if err := say(exec.CommandContext(ctx, o.Program, "binaries", "get", release.Of(p.From), release.Of(p.To)), "get the binaries to test"); err != nil {
		return err
	}
	etcd := exec.CommandContext(ctx, o.Program, "binaries", "get", "--component", string(binaries.Etcd), binaries.DefaultEtcd)
	return say(etcd, "get etcd")
}

// say runs a command with its output among that of the suite.
func say(cmd *exec.Cmd, what string) error {
	cmd.Stdout, cmd.Stderr = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter
	if err := runGently(cmd, goodbye); err != nil {
		return fmt.Errorf("%s: %w; its output is above", what, err)
	}
	return nil
}
