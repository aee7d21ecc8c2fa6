package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/release"
)

// programs are the binaries of a run, and where they come from.
type programs struct {
	apiservers map[string]string // version → path
	etcd       string
	provenance []string
}

// binaries gets everything that is to run, before the sandbox closes the way out.
func (f *runFlags) binaries(ctx context.Context, versions []string, progress io.Writer) (programs, error) {
	store := &binaries.Store{Overrides: f.overrides, Progress: progress}
	got := programs{apiservers: map[string]string{}}
	get := func(c binaries.Component, version string) (string, error) {
		b, err := store.Get(ctx, c, version)
		if err != nil {
			return "", binaryError(err)
		}
		from := b.How
		if b.Origin == binaries.OriginPath {
			from = "a binary of the user's own"
		} else {
			from += ", sha256:" + b.SHA256
		}
		got.provenance = append(got.provenance, fmt.Sprintf("%s %s: %s", c, version, from))
		return b.Path, nil
	}
	var err error
	for _, v := range versions {
		if got.apiservers[v], err = get(binaries.KubeAPIServer, release.Of(v)); err != nil {
			return programs{}, err
		}
	}
	got.etcd, err = get(binaries.Etcd, f.etcd)
	return got, err
}

func binaryError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, binaries.ErrBadVersion), errors.Is(err, binaries.ErrBadRef):
		return &exitError{exitUsage, err}
	default:
		return notRun(err)
	}
}
