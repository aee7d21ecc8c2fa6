// Command image makes the images of the backend kind: a node image with the kube-apiservers of
// several versions, and the image of kind's load balancer. It also makes the image of one
// kube-apiserver with the reference proxy, which needs no engine.
//
//	go run ./kindconfigs/image v1.36.3 v1.37.1
//	go run ./kindconfigs/image -reference bin/kube-apiserver-reference.tar v1.37.1
//
// The first makes skewproof/node:v1.36.3_v1.37.1. Everything in it but the kube-apiservers is of
// the oldest version. Its base is kind's own, kindest/base, if the engine can pull it; otherwise an
// equal one is made of Debian packages and Go modules. Downloads and builds stay in the user's
// cache directory, and images that the engine has are not made again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// These exit codes are the same as those of skewproof.
const (
	exitFailed = 1
	exitNeeds  = 3 // this machine lacks something
	exitUsage  = 4
)

var errFlags = errors.New("wrong flags")

// errNeeds is wrapped by errors about what this machine lacks.
var errNeeds = errors.New("this machine lacks something")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errFlags): // the flag package has printed it
		os.Exit(exitUsage)
	}
	fmt.Fprintln(os.Stderr, "kind-images:", err)
	switch {
	case errors.Is(err, binaries.ErrBadVersion), errors.Is(err, binaries.ErrBadRef):
		os.Exit(exitUsage)
	case errors.Is(err, errNeeds), errors.Is(err, binaries.ErrUnavailable):
		os.Exit(exitNeeds)
	default:
		os.Exit(exitFailed)
	}
}

type builder struct {
	engine engine
	cache  string // directory
	store  *binaries.Store
	pull   bool   // try to
	mirror string // of Debian
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("kind-images", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: go run ./kindconfigs/image [flags] VERSION...   (such as v1.36.3 v1.37.1)")
		flags.PrintDefaults()
	}
	pull := flags.Bool("pull", true, "try to pull kind's own images before making equal ones here")
	mirror := flags.String("debian-mirror", "http://deb.debian.org/debian", "where Debian packages come from; their signatures are checked")
	reference := flags.String("reference", "", "write the image of a kube-apiserver with the reference proxy to this file instead; the one argument is its version")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errFlags, err)
	}
	versions, err := parseVersions(flags.Args())
	if err != nil {
		return err
	}
	overrides, err := binaries.OverridesFromEnv(os.Getenv(binaries.OverrideEnv))
	if err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	b := &builder{cache: cache, store: &binaries.Store{Overrides: overrides, Progress: os.Stderr}, pull: *pull, mirror: *mirror}
	if *reference != "" {
		return b.writeReferenceImage(ctx, *reference, versions)
	}
	if b.engine, err = findEngine(ctx); err != nil {
		return err
	}
	unlock, err := lockCache(ctx, cache)
	if err != nil {
		return err
	}
	defer unlock()

	start := time.Now()
	node, err := b.nodeImage(ctx, versions)
	var balancer string
	if err == nil {
		balancer, err = b.balancerImage(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped; finished parts are kept, and the next call continues with them")
		}
		return err
	}
	for _, image := range []string{node, balancer} {
		size, err := b.engine.size(ctx, image)
		if err != nil {
			return err
		}
		fmt.Printf("%s\t%d MB\n", image, size/1e6)
	}
	say("done in %s", time.Since(start).Round(time.Second))
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "kind-images: "+format+"\n", args...) }
