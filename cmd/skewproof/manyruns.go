package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/shell"
)

// What the commands that carry out many runs have in common: conformance, matrix, bench and parity.

// registerParallel declares how many runs are under way at a time.
func registerParallel(flags *pflag.FlagSet, n *int) {
	flags.IntVar(n, "parallel", 1, "how many runs at a time; each needs a processor and 2 GB of memory or so")
}

func checkParallel(n int) error {
	if n < 1 {
		return usage("--parallel %d: want at least 1", n)
	}
	return nil
}

// prepareMany returns the program that carries out runs, which is this one, and makes the directory for them: out, or one that is called by name
// and time.
func prepareMany(out string, name ...string) (self, dir string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", notRun(err)
	}
	if out == "" {
		out = filepath.Join("_out", strings.Join(append(name, time.Now().Format("20060102-150405")), "-"))
	}
	dir, err = freshDir(out, "reports")
	return self, dir, err
}

// fetch gets the binaries that runs need on real processes, so that none of them pays for that. Versions may be named several times.
func (f *runFlags) fetch(ctx context.Context, versions []string, progress io.Writer) error {
	if f.backend != backendLocal {
		return nil
	}
	if err := f.environmentOverrides(); err != nil {
		return err
	}
	versions = slices.Clone(versions)
	slices.Sort(versions)
	_, err := f.binaries(ctx, slices.Compact(versions), progress)
	return err
}

// given are the flags of the command line again, but for where the output goes.
func given(flags *pflag.FlagSet) string {
	var words strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "out" {
			return
		}
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		fmt.Fprintf(&words, " --%s=%s", f.Name, shell.Quote(value))
	})
	return words.String()
}
