package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ownPackages is where this command's own programs are.
const ownPackages = "github.com/skewproof/skewproof/kindconfigs/image/"

// buildOwn builds one of our own programs, as an executable that needs no other file.
func buildOwn(ctx context.Context, name, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", to, ownPackages+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s, which takes the checkout of skewproof as the working directory: %w: %s", ownPackages+name, err, tail(string(out)))
	}
	return nil
}

// balancerImage makes sure that the engine has the image that kind puts in front of the control plane: Envoy, or where that cannot be
// pulled, our stand-in under Envoy's name, because kind can be told no other.
func (b *builder) balancerImage(ctx context.Context) (string, error) {
	want := recipe("balancer", debianRecipe())
	// What stands in under its name is not pulled again: the first look has settled that it cannot be.
	switch {
	case b.engine.has(ctx, envoyImage, ""):
		return envoyImage, nil
	case b.engine.has(ctx, envoyImage, want) && b.engine.has(ctx, standInImage, want):
		return standInImage, nil
	case b.pulled(ctx, envoyImage):
		return envoyImage, nil
	}
	debian, err := b.debian(ctx)
	if err != nil {
		return "", err
	}
	if err := b.bakeStandIn(ctx, debian, want); err != nil {
		return "", err
	}
	say("%s, which is not Envoy, gets the name %s, the only one that kind asks for", standInImage, envoyImage)
	_, err = b.engine.docker(ctx, nil, "tag", standInImage, envoyImage)
	return standInImage, err
}

func (b *builder) bakeStandIn(ctx context.Context, from, want string) error {
	say("making %s, which stands in for Envoy", standInImage)
	dir, err := os.MkdirTemp(b.cache, "balancer-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "envoy")
	if err := buildOwn(ctx, "balancer", program); err != nil {
		return err
	}
	return b.engine.bake(ctx, baking{
		from: from, to: standInImage, recipe: want,
		files: []file{{name: "usr/local/bin/envoy", mode: 0o755, from: program}}, // kind runs it by this name
		// As Envoy's image: whatever kind says is run.
		changes: []string{`ENTRYPOINT ["/usr/bin/env"]`, `LABEL org.opencontainers.image.title="skewproof's TCP balancer, a stand-in for Envoy"`},
	})
}

// output runs a program and returns the lines it prints.
func output(ctx context.Context, program string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, tail(said.String()))
	}
	return strings.Fields(string(out)), nil
}
