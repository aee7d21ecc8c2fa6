package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// realEngine returns an engine and an image in it that has bash. It skips the test where there is
// none: CI runs it after 'make kind-images'.
func realEngine(t *testing.T) (e engine, from string) {
	t.Helper()
	if _, err := findEngine(t.Context()); err != nil {
		t.Skipf("needs a Docker engine: %v", err)
	}
	for _, from := range []string{debianImage, kindBaseImage} {
		if e.id(t.Context(), from) != "" {
			return e, from
		}
	}
	t.Skip("needs an image of 'make kind-images' in the Docker engine")
	return e, ""
}

func TestBake(t *testing.T) {
	e, from := realEngine(t)
	name := fmt.Sprintf("skewproof/test:%d", os.Getpid())
	t.Cleanup(func() { _, _ = kind.Docker(context.Background(), nil, "rmi", "--force", name) })
	bake := func(recipe, script string) error {
		return e.build(t.Context(), imageBuild{
			from: from, to: name, recipe: recipe,
			options: []string{"--env=SAID=yes", "--stop-signal=SIGRTMIN+3"},
			files:   []file{{name: "skewproof-test/a", mode: 0o640, content: []byte("a")}, {name: "skewproof-test/b", mode: 0o644}},
			script:  []byte(script),
			changes: []string{`ENTRYPOINT ["/bin/echo", "hello"]`},
		})
	}
	if err := bake("one", "set -e\nrm /skewproof-test/b\nstat --format=%a%u /skewproof-test/a >/skewproof-test/c\n"); err != nil {
		t.Fatal(err)
	}
	if !e.has(t.Context(), name, "one") || e.has(t.Context(), name, "two") || e.has(t.Context(), name, "") {
		t.Error("it does not know its recipe")
	}
	first := e.id(t.Context(), name)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{name, "world"}, "hello world"},
		{[]string{"--entrypoint=bash", name, "-c", "cd /skewproof-test; echo * $(<c) $SAID"}, "a c 6400 yes"},
	} {
		got, err := kind.Docker(t.Context(), nil, append([]string{"run", "--rm", "--network=none"}, tc.args...)...)
		if err != nil || got != tc.want {
			t.Errorf("%v: got %q, %v; want %q", tc.args, got, err, tc.want)
		}
	}
	if got, err := kind.Docker(t.Context(), nil, "image", "inspect", "--format={{.Config.StopSignal}}", name); err != nil || got != "SIGRTMIN+3" {
		t.Errorf("the stop signal is %q, %v", got, err)
	}

	if err := bake("two", "echo what went wrong >&2; exit 7\n"); err == nil || !strings.Contains(err.Error(), "what went wrong") {
		t.Errorf("a script that fails: got %v", err)
	}
	if e.id(t.Context(), name) != first {
		t.Error("a script that fails made an image")
	}
	if err := bake("two", "true\n"); err != nil {
		t.Fatal(err)
	}
	if !e.has(t.Context(), name, "two") || e.id(t.Context(), first) != "" {
		t.Error("the image that was replaced is still there")
	}
	if left, err := kind.Docker(t.Context(), nil, "ps", "--all", "--quiet", "--filter=name="+imageBuild{to: name}.container()); err != nil || left != "" {
		t.Errorf("containers remain: %q, %v", left, err)
	}
}
