package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/balancer"
	"github.com/skewproof/skewproof/internal/binaries"
)

// These are the parts of the images other than Kubernetes. kindVersion is the version of the module
// in go.mod. The image is the one in that module's pkg/build/nodeimage/defaults.go; a test compares
// the two. The versions of containerd and the CNI plugins are those of the module's
// images/base/Dockerfile.
const (
	kindVersion       = "v0.33.0"
	kindBaseImage     = "docker.io/kindest/base:v20260820-69b56db7"
	containerdVersion = "v2.3.4"
	cniPluginsVersion = "v1.9.1"
)

// These are the names of the images that this program makes in addition to those of package kind,
// and the registry of Kubernetes.
const (
	debianImage = "skewproof/node-base:debian"
	baseImage   = "skewproof/node-base:" + kindVersion
	registry    = "registry.k8s.io"
)

// recipeLabel is the label with the hash of an image's sources. If they change, a new image is
// built.
const recipeLabel = "dev.skewproof.recipe"

//go:embed node pause/main.go inpod/main.go inpod/ask.go balancer/main.go balancer/config.go
var sources embed.FS

// parseVersions checks, sorts and deduplicates the versions wanted. The error wraps
// [binaries.ErrBadVersion] or [binaries.ErrBadRef].
func parseVersions(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: name the versions of kube-apiserver that the node image is to hold, such as v1.36.3 v1.37.1",
			binaries.ErrBadRef)
	}
	for _, v := range words {
		if _, err := binaries.ParseVersion(binaries.KubeAPIServer, v); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(words)
	semver.Sort(sorted)
	return slices.Compact(sorted), nil
}

// recipe is a hash over the content of an image: our own files, and parts.
func recipe(parts ...string) string {
	h := sha256.New()
	for _, files := range []fs.FS{sources, balancer.Sources()} {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
			return nil
		})
		if err != nil {
			panic(err) // they are part of this program
		}
	}
	for _, part := range append(parts, kindVersion, containerdVersion, cniPluginsVersion) {
		fmt.Fprintf(h, "%q\n", part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func source(path string) []byte {
	text, err := sources.ReadFile(path)
	if err != nil {
		panic(err) // they are part of this program
	}
	return text
}
