package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// runReal carries out a plan on real processes and judges it. The directory is empty if it did not get as far as having one.
func (f *runFlags) runReal(ctx context.Context, run history.Run, plan scenario.Plan, out, progress io.Writer) (runDir, error) {
	if err := f.environmentOverrides(); err != nil {
		return "", err
	}
	// What is cheap to find out comes before minutes of building.
	dir, err := newRunDir(f.out, run.Scenario, f.subject, time.Now())
	if err != nil {
		return "", err
	}
	defer dir.tidy()
	if err := sandbox.Check(ctx, sandbox.Command{Args: []string{rehearseCommand}}); err != nil {
		dir.discard()
		return "", notRun(err)
	}
	got, err := f.binaries(ctx, plan.Versions(), progress)
	if err != nil {
		dir.discard()
		return "", err
	}
	run.Environment = append(environment(), got.provenance...)
	if err := dir.writeSpec(spec{Run: run, Plan: plan, APIServers: got.apiservers, Etcd: got.etcd, Keep: f.keep}); err != nil {
		return "", notRun(err)
	}
	return dir, f.enter(ctx, dir, out, progress)
}

func (f *runFlags) environmentOverrides() error {
	fromEnvironment, err := binaries.OverridesFromEnv(os.Getenv(binaries.OverrideEnv))
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("%s: %w", binaries.OverrideEnv, err)}
	}
	for ref, path := range fromEnvironment {
		if _, ok := f.overrides[ref]; !ok { // a flag is nearer to the user than the environment
			f.overrides[ref] = path
		}
	}
	return nil
}
