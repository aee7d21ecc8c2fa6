package clients

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/reports"
)

// limit is how long one command may take. Clients' own limits in operations are shorter.
const limit = 60 * time.Second

// Way is a path to a server, with a path directly to the newer server.
type Way struct {
	Runner Runner
	// Context is the context of the kubeconfig that operations use. Newer is the context of the
	// newer server itself.
	Context, Newer string
	// NewerVersion is the version of kubectl that prepares and looks.
	NewerVersion string
	// Homes is a directory for discovery caches. The stale one of a version is in Stale(version).
	Homes string
}

// Stale is the directory whose discovery cache is from before the newer server was there.
func (w Way) Stale(version string) string { return filepath.Join(w.Homes, "stale-"+version) }

// own returns the home directory for requests to the newer server.
func (w Way) own() string { return filepath.Join(w.Homes, "newer") }

// kubectl is an invocation of the newer server's kubectl.
func (w Way) kubectl() Invocation {
	return Invocation{Program: string(binaries.Kubectl), Version: w.NewerVersion, Home: w.own()}
}

// Attempt carries out an operation with its program of a version.
func (w Way) Attempt(ctx context.Context, o Operation, version string) (reports.Did, string) {
	name := nameOf(o.Name, w.Context, version)
	did, why := w.attempt(ctx, o, version, name)
	if ctx.Err() != nil {
		return reports.DidNotRun, "it was interrupted"
	}
	return did, strings.ReplaceAll(why, name, "NAME")
}

// nameOf is the name of an operation's objects, as Kubernetes allows names: "get-o-wide-b-v1-36-3".
// Two ways to one cluster share no name.
func nameOf(operation, context, version string) string {
	between := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return strings.Join(strings.FieldsFunc(strings.ToLower(operation+" "+context+" "+version), between), "-")
}

func (w Way) attempt(ctx context.Context, o Operation, version, name string) (reports.Did, string) {
	for _, c := range o.Setup {
		if why, err := w.command(ctx, c, name, w.kubectl(), w.Newer); err != nil || why != "" {
			return reports.DidNotRun, "prepare it at the newer server: kubectl " + strings.Join(allNamed(c.Words, name), " ") + ": " + told(why, err)
		}
	}
	home := filepath.Join(w.Homes, o.Program+"-"+version)
	if o.Stale {
		home = filepath.Join(w.Homes, "stale-"+name) // a separate one, because kubectl refreshes a stale cache
		if err := os.CopyFS(home, os.DirFS(w.Stale(version))); err != nil {
			return reports.DidNotRun, "copy the stale discovery cache: " + err.Error()
		}
	}
	for _, c := range o.Do {
		switch why, err := w.command(ctx, c, name, Invocation{Program: o.Program, Version: version, Home: home}, w.Context); {
		case err != nil:
			return reports.DidNotRun, err.Error()
		case why != "":
			return reports.DidNotWork, why
		}
	}
	for _, t := range o.Truth {
		switch why, err := w.look(ctx, t, name); {
		case err != nil:
			return reports.DidNotRun, err.Error()
		case why != "":
			return reports.DidNotWork, why
		}
	}
	return reports.DidWork, ""
}

func told(why string, err error) string {
	if err != nil {
		return err.Error()
	}
	return why
}

// command carries out one command. why says what is wrong with its result; it is empty if the
// result is right.
func (w Way) command(ctx context.Context, c Command, name string, i Invocation, through string) (why string, err error) {
	i.Words = append([]string{"--context", through}, allNamed(c.Words, name)...)
	i.Editor, i.Limit = c.Editor, limit
	if c.Object != nil {
		if i.Input, err = c.Object(name); err != nil {
			return "", err
		}
	}
	var beside sync.WaitGroup
	var once sync.Once
	var besideWhy string
	var besideErr error
	start := func() {
		once.Do(func() {
			if c.Meanwhile == nil {
				return
			}
			beside.Go(func() {
				besideWhy, besideErr = w.command(ctx, Command{Words: c.Meanwhile}, name, w.kubectl(), w.Newer)
			})
		})
	}
	if c.After == "" {
		start()
	}
	if c.After != "" || c.Until != "" {
		i.Seen = func(output string) bool {
			if strings.Contains(output, named(c.After, name)) {
				start()
			}
			return c.Until != "" && strings.Contains(output, named(c.Until, name))
		}
	}
	ended, err := w.Runner.Run(ctx, i)
	beside.Wait()
	switch {
	case err != nil:
		return "", fmt.Errorf("start %s %s: %w", i.Program, i.Version, err)
	case besideErr != nil:
		return "", besideErr
	case besideWhy != "":
		return "", fmt.Errorf("meanwhile, at the newer server, kubectl %s: %s", strings.Join(allNamed(c.Meanwhile, name), " "), besideWhy)
	}
	return c.judge(ended, name), nil
}

// judge says what is wrong with the end of a command; it is empty if the end is right.
func (c Command) judge(e Ended, name string) string {
	first := FirstError(e.Problem)
	switch {
	case e.TooLong:
		return strings.TrimSuffix(fmt.Sprintf("it did not end within %s, after it printed %q: %s", limit, lastLine(e.Output), first), ": ")
	case c.Until != "" && !e.Enough:
		return strings.TrimSuffix(fmt.Sprintf("exit code %d before it printed %q: %s", e.Code, named(c.Until, name), first), ": ")
	case c.Until == "" && e.Code != c.Code:
		if first == "" {
			return fmt.Sprintf("exit code %d, want %d", e.Code, c.Code)
		}
		return first
	case c.Quiet && strings.TrimSpace(e.Problem) != "":
		return FirstLine(e.Problem)
	}
	for _, says := range allNamed(c.Says, name) {
		if strings.Contains(e.Output, says) || strings.Contains(e.Problem, says) {
			continue
		}
		if first == "" {
			return fmt.Sprintf("exit code %d, and the output does not have %q in it", e.Code, says)
		}
		return first
	}
	return ""
}

// look compares the newer server's own object with the expected one.
func (w Way) look(ctx context.Context, t Truth, name string) (why string, err error) {
	resource := allNamed(t.Resource, name)
	what := strings.Join(resource, " ")
	words := append([]string{"--context", w.Newer, "get", "--ignore-not-found"}, resource...)
	if t.Path == "" {
		words = append(words, "-o", "name")
	} else {
		words = append(words, "-o", "jsonpath="+t.Path)
	}
	i := w.kubectl()
	i.Words, i.Limit = words, limit
	ended, err := w.Runner.Run(ctx, i)
	switch {
	case err != nil:
		return "", fmt.Errorf("look at the newer server: start kubectl: %w", err)
	case ended.Code != 0 || ended.TooLong:
		return "", fmt.Errorf("look at the newer server: kubectl get %s: exit code %d: %s", what, ended.Code, FirstError(ended.Problem))
	case t.Path == "" && strings.TrimSpace(ended.Output) != "":
		return fmt.Sprintf("the client reports success, and %s is still there", what), nil
	case ended.Output != t.Want && t.Path != "":
		return fmt.Sprintf("the client reports success, and the newer server has %q, not %q, in %s of %s", ended.Output, t.Want, t.Path,
			what), nil
	}
	return "", nil
}
