package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// nodeRepository is where 'make kind-images' puts node images. Their tags name the kube-apiservers in them, the oldest first: all else
// in the image is of that version.
const nodeRepository = "skewproof/node"

// loadBalancerImage is what kind puts in front of several control-plane nodes. It would pull the image if it were not there.
// Source: Image in sigs.k8s.io/kind/pkg/cluster/internal/loadbalancer/const.go.
const loadBalancerImage = "docker.io/envoyproxy/envoy:v1.36.2"

// standInImage is what 'make kind-images' gives that name where Envoy cannot be pulled.
const standInImage = "skewproof/loadbalancer:dev"

// ImageName is the node image that holds exactly these versions.
func ImageName(versions []string) string {
	sorted := slices.Clone(versions)
	semver.Sort(sorted)
	return nodeRepository + ":" + strings.Join(slices.Compact(sorted), "_")
}

// choose finds among tags of node images one that holds all versions, with as few others as possible: an older one among them would make
// the nodes' other programs older. ok is false if there is none.
func choose(tags, versions []string) (image string, ok bool) {
	best := 0
	for _, tag := range tags {
		held := strings.Split(tag, "_")
		if slices.ContainsFunc(versions, func(v string) bool { return !slices.Contains(held, v) }) {
			continue
		}
		if image == "" || len(held) < best || len(held) == best && tag < image {
			image, best = tag, len(held)
		}
	}
	return nodeRepository + ":" + image, image != ""
}

// FindImage finds a node image in the engine.
func FindImage(ctx context.Context, versions []string) (string, error) {
	tags, err := dockerLines(ctx, "image", "ls", "--format", "{{.Tag}}", nodeRepository)
	if err != nil {
		return "", err
	}
	image, ok := choose(tags, versions)
	if !ok {
		sorted := slices.Clone(versions)
		semver.Sort(sorted)
		return "", fmt.Errorf("no node image holds kube-apiserver %s: make one, once, with\n  make kind-images VERSIONS=%q",
			strings.Join(slices.Compact(sorted), " and "), strings.Join(slices.Compact(sorted), " "))
	}
	return image, nil
}
