package clients

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// recorded answers invocations from a table, and keeps them.
type recorded struct {
	mu     sync.Mutex
	answer func(Invocation) (Ended, error)
	all    []Invocation
}

func (r *recorded) Run(_ context.Context, i Invocation) (Ended, error) {
	r.mu.Lock()
	r.all = append(r.all, i)
	r.mu.Unlock()
	e, err := r.answer(i)
	if i.Seen != nil && err == nil {
		e.Enough = i.Seen(e.Output)
	}
	return e, err
}

func (r *recorded) way(t *testing.T) Way {
	return Way{Runner: r, Context: "b", Newer: "a-direct", NewerVersion: "v1.37.1", Homes: t.TempDir()}
}

// find is the operation of that name.
func find(t *testing.T, name string) Operation {
	t.Helper()
	i := slices.IndexFunc(Operations(), func(o Operation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("there is no operation %q", name)
	}
	return Operations()[i]
}

// at reports whether an invocation goes to a context and has these words.
func at(i Invocation, context string, words ...string) bool {
	return i.Words[1] == context && strings.Contains(strings.Join(i.Words, " "), strings.Join(words, " "))
}

func TestWhatBecameOfAnOperation(t *testing.T) {
	const denied = `error: the server doesn't have a resource type "clustertrustbundles"`
	truth := func(have string) func(Invocation) (Ended, error) {
		return func(i Invocation) (Ended, error) {
			switch {
			case at(i, "a-direct", "get", "--ignore-not-found"):
				return Ended{Output: have}, nil
			case at(i, "b", "label"):
				return Ended{Output: "labeled"}, nil
			}
			return Ended{}, nil
		}
	}
	fails := func(context string, e Ended, err error) func(Invocation) (Ended, error) {
		return func(i Invocation) (Ended, error) {
			if i.Words[1] == context {
				return e, err
			}
			return Ended{}, nil
		}
	}
	for name, c := range map[string]struct {
		operation string
		answer    func(Invocation) (Ended, error)
		did       reports.Did
		why       string
	}{
		"it works":                    {"label", truth("labelled"), reports.DidWork, ""},
		"success is claimed":          {"label", truth("made"), reports.DidNotWork, `the newer server has "made", not "labelled"`},
		"a deleted object stays":      {"wait --for=delete", truth("bundle/x"), reports.DidNotWork, "is still there"},
		"the server denies":           {"get", fails("b", Ended{Code: 1, Problem: denied + "\n"}, nil), reports.DidNotWork, denied},
		"it prints something else":    {"get", fails("b", Ended{Output: "No resources found"}, nil), reports.DidNotWork, `the output does not have "NAME" in it`},
		"it hangs":                    {"get", fails("b", Ended{Code: -1, TooLong: true}, nil), reports.DidNotWork, "it did not end within 1m0s"},
		"kubectl cannot be started":   {"get", fails("b", Ended{}, errors.New("no such file")), reports.DidNotRun, "start kubectl v1.36.3: no such file"},
		"it cannot be prepared":       {"get", fails("a-direct", Ended{Code: 1, Problem: denied}, nil), reports.DidNotRun, "prepare it at the newer server: kubectl create -f -: " + denied},
		"it cannot be read":           {"create", fails("a-direct", Ended{Code: 1, Problem: "Unable to connect"}, nil), reports.DidNotWork, "exit code 0, and the output does not have"},
		"a warning where none may be": {"auth can-i", fails("b", Ended{Output: "yes", Problem: "Warning: the server doesn't have a resource type\n"}, nil), reports.DidNotWork, "Warning: the server"},
		"success where none may be":   {"top nodes", fails("b", Ended{Output: "NAME CPU"}, nil), reports.DidNotWork, "exit code 0, want 1"},
		"another error":               {"top nodes", fails("b", Ended{Code: 1, Problem: "error: connection refused"}, nil), reports.DidNotWork, "error: connection refused"},
		"the expected error":          {"top nodes", fails("b", Ended{Code: 1, Problem: "error: Metrics API not available"}, nil), reports.DidWork, ""},
		"a watch that ends early":     {"get --watch", fails("b", Ended{Code: 1, Output: "ADDED", Problem: denied}, nil), reports.DidNotWork, `exit code 1 before it printed "DELETED": ` + denied},
		"a watch":                     {"get --watch", fails("b", Ended{Code: -1, Output: "ADDED x\nDELETED x"}, nil), reports.DidWork, ""},
	} {
		t.Run(name, func(t *testing.T) {
			did, why := (&recorded{answer: c.answer}).way(t).Attempt(t.Context(), find(t, c.operation), "v1.36.3")
			if did != c.did || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%s (%q), want %s (%q)", did, why, c.did, c.why)
			}
		})
	}
}

// An object that cannot be read is unknown, even if kubectl claims success.
func TestATruthThatCannotBeReadIsNotRun(t *testing.T) {
	r := &recorded{answer: func(i Invocation) (Ended, error) {
		if at(i, "a-direct", "get", "--ignore-not-found") {
			return Ended{Code: 1, Problem: "Unable to connect to the server"}, nil
		}
		return Ended{Output: "labeled"}, nil
	}}
	did, why := r.way(t).Attempt(t.Context(), find(t, "label"), "v1.36.3")
	if did != reports.DidNotRun || !strings.Contains(why, "look at the newer server") {
		t.Errorf("%s (%q)", did, why)
	}
}

// An interrupted operation says nothing of the servers.
func TestInterruptedIsNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &recorded{answer: func(Invocation) (Ended, error) { return Ended{Code: -1}, nil }}
	if did, _ := r.way(t).Attempt(ctx, find(t, "get"), "v1.36.3"); did != reports.DidNotRun {
		t.Errorf("an interrupted operation: %s", did)
	}
}

// The Meanwhile command begins when the output has the text in After.
func TestMeanwhileComesAfterItsOutput(t *testing.T) {
	for output, want := range map[string]bool{"ADDED": true, "": false} {
		r := &recorded{answer: func(i Invocation) (Ended, error) {
			if i.Words[1] == "b" {
				return Ended{Output: output}, nil
			}
			return Ended{}, nil
		}}
		r.way(t).Attempt(t.Context(), find(t, "get --watch"), "v1.36.3")
		deleted := slices.ContainsFunc(r.all, func(i Invocation) bool { return at(i, "a-direct", "delete") })
		if deleted != want {
			t.Errorf("after the output %q it is deleted: %t, want %t", output, deleted, want)
		}
	}
}

// A failure of the Meanwhile command is not a failure of the tested operation.
func TestAFailedMeanwhileIsNotRun(t *testing.T) {
	r := &recorded{answer: func(i Invocation) (Ended, error) {
		if at(i, "a-direct", "delete") {
			return Ended{Code: 1, Problem: "error: no"}, nil
		}
		return Ended{}, nil
	}}
	if did, why := r.way(t).Attempt(t.Context(), find(t, "wait --for=delete"), "v1.36.3"); did != reports.DidNotRun || !strings.Contains(why, "meanwhile, at the newer server") {
		t.Errorf("%s (%q)", did, why)
	}
}

// kubectl of the client's version uses the tested path. kubectl of the newer server prepares the
// operation. Each operation with a stale cache has its own copy of the cache.
func TestEveryOperationGoesTheTestedWay(t *testing.T) {
	for _, o := range Operations() {
		t.Run(o.Name, func(t *testing.T) {
			r := &recorded{answer: func(Invocation) (Ended, error) { return Ended{}, nil }}
			w := r.way(t)
			if err := os.MkdirAll(w.Stale("v1.35.4"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.Stale("v1.35.4"), "cache"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.Attempt(t.Context(), o, "v1.35.4")
			tested := 0
			for _, i := range r.all {
				if i.Words[1] == "b" {
					tested++
				}
				if (i.Version == "v1.35.4" && i.Program == o.Program) != (i.Words[1] == "b") || i.Words[1] != "b" && i.Program != "kubectl" {
					t.Errorf("%s %s goes to %s: %q", i.Program, i.Version, i.Words[1], i.Words)
				}
				if strings.Contains(strings.Join(i.Words, " "), "{name}") {
					t.Errorf("nobody named %q", i.Words)
				}
				_, err := os.Stat(filepath.Join(i.Home, "cache"))
				if (err == nil) != (o.Stale && i.Words[1] == "b") || i.Home == w.Stale("v1.35.4") {
					t.Errorf("the home of %q is %s", i.Words, i.Home)
				}
			}
			if tested == 0 {
				t.Error("nothing is asked of the older server")
			}
		})
	}
}

// The table is about what only the newer server has: most rows must be able to fail without a
// proxy.
func TestOperationsAreWhole(t *testing.T) {
	names, crossing := map[string]bool{}, 0
	for _, o := range Operations() {
		if names[nameOf(o.Name, "b", "v1.37.1")] || o.Sentence == "" || len(o.Do) == 0 {
			t.Errorf("%q is there twice, or is not whole", o.Name)
		}
		names[nameOf(o.Name, "b", "v1.37.1")] = true
		if o.Crosses {
			crossing++
		}
		checked := len(o.Truth) > 0
		for _, c := range slices.Concat(o.Setup, o.Do) {
			if c.Object != nil {
				if text, err := c.Object("x"); err != nil || !strings.Contains(text, `"name":"x"`) {
					t.Errorf("%q: object %s, error %v", o.Name, text, err)
				}
			}
		}
		for _, c := range o.Do {
			checked = checked || len(c.Says) > 0 || c.Until != ""
		}
		if !checked {
			t.Errorf("%q checks nothing but an exit code", o.Name)
		}
	}
	if crossing < 20 {
		t.Errorf("only %d operations cross", crossing)
	}
}

func TestStaleCaches(t *testing.T) {
	r := &recorded{answer: func(Invocation) (Ended, error) { return Ended{}, nil }}
	w := r.way(t)
	if err := w.FillStale(t.Context(), "v1.35.4"); err != nil || r.all[0].Home != w.Stale("v1.35.4") || r.all[0].Words[1] != "b" {
		t.Errorf("asked %+v, error %v", r.all, err)
	}
	r.answer = func(Invocation) (Ended, error) { return Ended{Code: 1, Problem: "error: no"}, nil }
	if err := w.FillStale(t.Context(), "v1.35.4"); err == nil || !strings.Contains(err.Error(), "exit code 1: error: no") {
		t.Errorf("error %v where it fails", err)
	}
	if w.Learned(t.Context(), 1) {
		t.Error("a server that answers nothing has learned")
	}
	r.answer = func(Invocation) (Ended, error) { return Ended{}, nil }
	if !w.Learned(t.Context(), limit) {
		t.Error("a server that answers has not learned")
	}
}
