package binaries

import (
	"context"
	"slices"
	"sync"
)

// getModules downloads the modules of the binaries in Next that are missing, while ref is built.
// Compiling keeps the processors busy and the network idle, so the next build then finds its
// modules. stop ends what is not done yet. Errors are ignored, because the build of the binary
// reports them.
func (s *Store) getModules(ctx context.Context, path, dir string, work workspace, ref Ref) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, next := range s.Next {
			if next == ref || programs[next.Component].npm || s.has(dir, next) {
				continue
			}
			silent := s.progress(next)
			silent.w = nil
			_, _, _, _ = prepareBuild(ctx, path, work.path("next-"+next.Name()), next, silent)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// has reports whether Get would find the binary without fetching it. It does not check the hash.
func (s *Store) has(dir string, ref Ref) bool {
	if _, own := s.Overrides[ref]; own {
		return true
	}
	_, err := describeEntry(entryDir(dir, ref))
	return err == nil
}

// list returns the arguments of the go command that loads all packages of the program, and writes
// the modules of these packages. It downloads only these modules. "go mod download" would download
// all modules of the module graph.
func (p program) list(pkg string) []string {
	args := []string{"list", "-deps", "-tags", p.tags, "-f", "{{with .Module}}{{.Path}}{{end}}"}
	if p.tests() {
		args = append(args, "-test")
	}
	return slices.Concat(args, []string{pkg})
}
