package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// engine is the Docker engine.
type engine struct{ kind.Engine }

// has reports whether the engine has the image, made from that recipe; "": not ours.
func (e engine) has(ctx context.Context, image, recipe string) bool {
	got, err := kind.Docker(ctx, nil, "image", "inspect", "--format", fmt.Sprintf("{{index .Config.Labels %q}}", recipeLabel), image)
	return err == nil && got == recipe
}

// size is in bytes.
func (e engine) size(ctx context.Context, image string) (int64, error) {
	text, err := kind.Docker(ctx, nil, "image", "inspect", "--format", "{{.Size}}", image)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// id returns the ID of an image, or "" if the image does not exist.
func (e engine) id(ctx context.Context, image string) string {
	id, err := kind.Docker(ctx, nil, "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil {
		return ""
	}
	return id
}

// imageBuild says how an image is made from another.
type imageBuild struct {
	from, to string
	recipe   string
	options  []string // of 'docker create': their effect stays in the image
	files    []file
	script   []byte // bash, run in the container once the files are there
	changes  []string
}

// container is the name of the container that becomes the image.
func (b imageBuild) container() string {
	return "making-" + strings.NewReplacer("/", "-", ":", "-").Replace(b.to)
}

// build makes an image as kind does (pkg/build/nodeimage): it creates a container, copies files
// into it, runs a script in it, and commits the container. This needs no builder and no privileges.
// Files that the script removes are not in the image.
func (e engine) build(ctx context.Context, b imageBuild) error {
	before := e.id(ctx, b.to)
	remove := func(ctx context.Context) { _, _ = kind.Docker(ctx, nil, "rm", "--force", "--volumes", b.container()) }
	remove(ctx) // a killed call may have left it behind
	// seccomp: containerd makes system calls that Docker's profile forbids.
	create := append([]string{"create", "--name=" + b.container(), "--interactive", "--network=none", "--security-opt=seccomp=unconfined",
		"--entrypoint=bash"}, b.options...)
	container, err := kind.Docker(ctx, nil, append(create, b.from)...)
	defer remove(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("make %s: %w", b.to, err)
	}

	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(writeLayer(w, b.files)) }()
	_, err = kind.Docker(ctx, r, "cp", "-", container+":/")
	_ = r.Close()
	if err != nil {
		return fmt.Errorf("copy files into %s: %w", b.to, err)
	}
	if len(b.script) > 0 {
		if _, err := kind.Docker(ctx, bytes.NewReader(b.script), "start", "--attach", "--interactive", container); err != nil {
			return fmt.Errorf("make %s in a container: %w", b.to, err)
		}
	}
	commit := []string{"commit", "--change=LABEL " + recipeLabel + "=" + b.recipe}
	for _, c := range b.changes {
		commit = append(commit, "--change="+c)
	}
	if _, err := kind.Docker(ctx, nil, append(commit, container, b.to)...); err != nil {
		return fmt.Errorf("make %s: %w", b.to, err)
	}
	if before != "" && before != e.id(ctx, b.to) {
		// This fails if something uses the image, which then stays.
		_, _ = kind.Docker(ctx, nil, "rmi", before)
	}
	return nil
}
