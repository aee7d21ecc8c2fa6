package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"
)

// The needs of a node, in bytes. By measurement, kube-apiserver, etcd, controllers and kubelet take
// 390 MiB of memory and 0.6 GB of disk. The rest is for load and logs.
const (
	memoryPerNode = 600 << 20
	diskPerNode   = 1 << 30
)

// Engine is what 'docker info --format {{json .}}' prints: the response of GET /info.
type Engine struct {
	Architecture    string // the kernel's name for it, such as "x86_64"
	ServerVersion   string
	OSType          string
	OperatingSystem string
	KernelVersion   string
	CgroupVersion   string
	DockerRootDir   string
	MemTotal        uint64
	ServerErrors    []string
}

// Found is the result of [Check].
type Found struct {
	Image string // the node image to use
	Facts []string
}

// Check finds out in about a second whether the engine can run the cluster. Errors say what to do.
func Check(ctx context.Context, versions []string, servers int) (Found, error) {
	e, err := FindEngine(ctx)
	if err != nil {
		return Found{}, err
	}
	if err := e.check(servers, FreeSpace(e.DockerRootDir)); err != nil {
		return Found{}, err
	}
	if err := checkReachable(ctx); err != nil {
		return Found{}, err
	}
	image, err := FindImage(ctx, versions)
	if err != nil {
		return Found{}, err
	}
	balancer, err := imageID(ctx, LoadBalancerImage)
	if err != nil {
		return Found{}, fmt.Errorf("the image of kind's load balancer, %s, is not in the Docker engine: get it, or a stand-in, with\n  make kind-images VERSIONS=%q",
			LoadBalancerImage, strings.Join(versions, " "))
	}
	if _, err := Docker(ctx, nil, "run", "--rm", "--privileged", "--network=none", "--label", runLabel+"=check", "--entrypoint=/bin/true",
		image); err != nil {
		return Found{}, fmt.Errorf("kind's nodes are privileged containers, and the Docker engine starts none: %w\n"+
			"  Inside a container this needs one that is privileged itself; on machines that hold back single capabilities, '.ci/docker start' makes an engine that does without", err)
	}
	id, err := imageID(ctx, image)
	if err != nil {
		return Found{}, err
	}
	facts := []string{
		fmt.Sprintf("Docker %s on %s, Linux %s, cgroup v%s", e.ServerVersion, e.OperatingSystem, e.KernelVersion, e.CgroupVersion),
		fmt.Sprintf("node image %s, %s", image, id),
	}
	if standIn, err := imageID(ctx, StandInImage); err == nil && standIn == balancer {
		facts = append(facts, "a small TCP balancer stands in for Envoy, kind's load balancer")
	}
	return Found{Image: image, Facts: facts}, nil
}

func imageID(ctx context.Context, image string) (string, error) {
	return Docker(ctx, nil, "image", "inspect", "--format", "{{.Id}}", image)
}

// FindEngine asks the Docker engine about itself. The error says what to do if none answers.
func FindEngine(ctx context.Context) (Engine, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return Engine{}, errors.New("the backend kind needs Docker's client, the program docker, in the PATH: install Docker, or use --backend local, which needs none")
	}
	out, err := Docker(ctx, nil, "info", "--format", "{{json .}}")
	var e Engine
	if broken := json.Unmarshal([]byte(out), &e); err == nil {
		err = broken
	}
	if err == nil && len(e.ServerErrors) > 0 {
		err = errors.New(strings.Join(e.ServerErrors, "; "))
	}
	if err != nil {
		return Engine{}, fmt.Errorf("no Docker engine answers: %w\n  Start it, see that you may use it (the group docker), or set DOCKER_HOST; or use --backend local, which needs none", err)
	}
	return e, nil
}

// check returns an error that says what the engine lacks. disk is the free space in bytes; -1 means
// unknown.
func (e Engine) check(servers int, disk int64) error {
	memory, space := uint64(servers)*memoryPerNode, int64(servers)*diskPerNode
	switch {
	case e.OSType != "linux":
		return fmt.Errorf("the Docker engine runs %s containers: kind needs Linux ones", e.OSType)
	case e.MemTotal < memory:
		return fmt.Errorf("the Docker engine has %d MiB of memory: %d nodes need %d; give it more, or use fewer --servers", e.MemTotal>>20,
			servers, memory>>20)
	case disk >= 0 && disk < space:
		return fmt.Errorf("%d MiB are free in %s: %d nodes need %d; 'docker system df' says what takes room", disk>>20, e.DockerRootDir, servers,
			space>>20)
	}
	return nil
}

// FreeSpace returns the free space of a directory in bytes. It is -1 if the directory is on another
// machine.
func FreeSpace(dir string) int64 {
	var s unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * s.Bsize
}

// checkReachable returns an error if this process and the engine do not share a network. Load,
// faults and ground truth dial the nodes' addresses, and nodes dial one of ours. Every engine has a
// network called bridge, whose gateway is an address of the engine's machine. createNetwork checks
// again.
func checkReachable(ctx context.Context) error {
	gateways, err := dockerLines(ctx, "network", "inspect", "bridge", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
	if err != nil || len(gateways) == 0 {
		return err // an engine without that network can only be tried
	}
	own, err := ownAddresses()
	if err != nil {
		return err
	}
	for _, gateway := range gateways {
		if address, err := netip.ParseAddr(gateway); err == nil && own[address] {
			return nil
		}
	}
	return notHere(strings.Join(gateways, ", "))
}

// nodeRepository is the repository of the node images that 'make kind-images' makes. A tag names
// the versions of kube-apiserver in the image, the oldest first. All other programs in the image
// have the oldest version.
const nodeRepository = "skewproof/node"

// LoadBalancerImage is the image of kind's load balancer for several control-plane nodes.
// Source: Image in sigs.k8s.io/kind/pkg/cluster/internal/loadbalancer/const.go.
const LoadBalancerImage = "docker.io/envoyproxy/envoy:v1.36.2"

// StandInImage replaces that image if Envoy cannot be pulled: 'make kind-images' gives it both
// names.
const StandInImage = "skewproof/loadbalancer:dev"

// PodImage is an image in every node image, for pods that need neither a registry nor a network.
// Its only program is kindconfigs/image/inpod. A pod must not pull the image (PullNever).
const PodImage = "docker.io/skewproof/inpod:latest"

// ImageName returns the name of the node image with exactly these versions.
func ImageName(versions []string) string {
	return nodeRepository + ":" + strings.Join(compact(versions), "_")
}

// compact sorts versions, the oldest first, and removes duplicates.
func compact(versions []string) []string {
	sorted := slices.Clone(versions)
	semver.Sort(sorted)
	return slices.Compact(sorted)
}

// chooseImage returns the tag of a node image that has all versions and as few others as possible.
// With a further, older version, the other programs of the nodes would be older. ok is false if no
// image has all versions.
func chooseImage(tags, versions []string) (image string, ok bool) {
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

// FindImage returns a node image of the engine that has all versions.
func FindImage(ctx context.Context, versions []string) (string, error) {
	tags, err := dockerLines(ctx, "image", "ls", "--format", "{{.Tag}}", nodeRepository)
	if err != nil {
		return "", err
	}
	image, ok := chooseImage(tags, versions)
	if !ok {
		return "", fmt.Errorf("no node image has kube-apiserver %s: make one, once, with\n  make kind-images VERSIONS=%q",
			strings.Join(compact(versions), " and "), strings.Join(compact(versions), " "))
	}
	return image, nil
}
