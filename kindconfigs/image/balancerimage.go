package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

const ownPackages = "github.com/skewproof/skewproof/kindconfigs/image/"

// buildOwn builds one of our own programs as a static executable.
func buildOwn(ctx context.Context, name, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", to, ownPackages+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s, which takes the checkout of skewproof as the working directory: %w: %s", ownPackages+name, err,
			kind.Tail(string(out)))
	}
	return nil
}

// balancerImage makes sure that the engine has the image of the load balancer that kind uses:
// Envoy, or, if that cannot be pulled, our stand-in under Envoy's name, which kind requires.
func (b *builder) balancerImage(ctx context.Context) (string, error) {
	want := recipe("balancer", debianRecipe())
	// If the engine has the stand-in, Envoy could not be pulled, and that is not tried again.
	switch {
	case b.engine.has(ctx, kind.LoadBalancerImage, ""):
		return kind.LoadBalancerImage, nil
	case b.engine.has(ctx, kind.LoadBalancerImage, want) && b.engine.has(ctx, kind.StandInImage, want):
		return kind.StandInImage, nil
	case b.pulled(ctx, kind.LoadBalancerImage):
		return kind.LoadBalancerImage, nil
	}
	debian, err := b.debian(ctx)
	if err != nil {
		return "", err
	}
	if err := b.buildStandIn(ctx, debian, want); err != nil {
		return "", err
	}
	say("%s, which is not Envoy, gets the name %s, the only one that kind asks for", kind.StandInImage, kind.LoadBalancerImage)
	_, err = kind.Docker(ctx, nil, "tag", kind.StandInImage, kind.LoadBalancerImage)
	return kind.StandInImage, err
}

func (b *builder) buildStandIn(ctx context.Context, from, want string) error {
	say("making %s, which stands in for Envoy", kind.StandInImage)
	dir, err := os.MkdirTemp(b.cache, "balancer-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "envoy")
	if err := buildOwn(ctx, "balancer", program); err != nil {
		return err
	}
	return b.engine.build(ctx, imageBuild{
		from: from, to: kind.StandInImage, recipe: want,
		files: []file{{name: "usr/local/bin/envoy", mode: 0o755, from: program}}, // kind runs it by this name
		// As in Envoy's image, kind gives the command.
		changes: []string{`ENTRYPOINT ["/usr/bin/env"]`, `LABEL org.opencontainers.image.title="skewproof's TCP balancer, a stand-in for Envoy"`},
	})
}

func output(ctx context.Context, program string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, kind.Tail(output.String()))
	}
	return strings.Fields(string(out)), nil
}
