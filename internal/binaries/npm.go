package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoNode is wrapped by errors about a program in JavaScript on a machine without Node.js or npm.
var ErrNoNode = errors.New("it takes Node.js and npm")

// nodeScope is a package.json beside a program. Without it, Node.js would look for one in the
// directories above the cache, and could take the program for an ECMAScript module.
const nodeScope = "{\"type\": \"commonjs\"}\n"

// buildNode stages a program in JavaScript with everything that it imports in one file, which
// Node.js runs. npm gets the packages of the lock file, whose hashes it verifies, from the registry
// that it is configured for. It runs none of their scripts.
func (s *Store) buildNode(ctx context.Context, ref Ref, work workspace, p progress) (got Binary, err error) {
	var paths []string
	for _, name := range []string{"node", "npm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			return got, fmt.Errorf("%w: %w; install Node.js (https://nodejs.org)", ErrNoNode, err)
		}
		paths = append(paths, path)
	}
	node, npm := paths[0], paths[1]
	src := work.path("src")
	if err := os.Mkdir(src, 0o755); err != nil {
		return got, err
	}
	if err := writeFiles(src, ref); err != nil {
		return got, err
	}
	what := ref.Component.module() + "@" + strings.TrimPrefix(string(ref.Version), "v")
	done := p.during("getting the npm package "+what, 0, nil)
	err = runTool(ctx, src, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	done()
	if err != nil {
		return got, fmt.Errorf("get the npm package %s: %w", what, err)
	}
	if err := runTool(ctx, src, node, filepath.Join("node_modules", "esbuild", "bin", "esbuild"), "main.mjs", "--bundle", "--platform=node",
		"--format=cjs",
		"--target=node20", "--log-level=warning", "--banner:js=#!/usr/bin/env node", "--outfile="+work.binary()); err != nil {
		return got, fmt.Errorf("put the program into one file: %w", err)
	}
	if err := errors.Join(os.Chmod(work.binary(), 0o755),
		os.WriteFile(filepath.Join(work.stage(), "package.json"), []byte(nodeScope), 0o644)); err != nil {
		return got, err
	}
	got.How = "made from the npm package " + what
	return got, nil
}

// runTool runs a program in a directory. The error ends with the last lines of its standard error.
// When ctx ends, the program and everything it has started are killed.
func runTool(ctx context.Context, dir, path string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	err := runGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w; its last lines:\n%s", filepath.Base(path), err, lastLines(stderr.String()))
	}
	return nil
}
