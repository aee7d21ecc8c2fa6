package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// nestedImage is a container image in the node image. It has one program.
type nestedImage struct {
	tag       string
	component binaries.Component
	version   string
}

// Our own programs in nested images, which have no version: one for the sandboxes of pods, and one
// for the pods of tests.
const (
	pause binaries.Component = "pause"
	inpod binaries.Component = "inpod"
)

// isOwn reports whether the program is our own.
func (i nestedImage) isOwn() bool { return i.component == pause || i.component == inpod }

// program is the name of the program, which the pod's manifest has.
func (i nestedImage) program() string {
	if i.component == binaries.KubeAPIServerReference {
		return string(binaries.KubeAPIServer)
	}
	return string(i.component)
}

func (i nestedImage) archive() string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(i.tag) + ".tar"
}

// contents returns the nested images of a node image. wanted has the images that 'kubeadm config
// images list' of the oldest version prints. sandbox is the image of the pods' sandboxes in
// containerd's configuration. versions are sorted. kube-proxy and CoreDNS are left out, because
// kubeadm is configured not to start them.
func contents(wanted []string, sandbox string, versions []string) ([]nestedImage, error) {
	var all []nestedImage
	add := func(i nestedImage) {
		if !slices.ContainsFunc(all, func(have nestedImage) bool { return have.tag == i.tag }) {
			all = append(all, i)
		}
	}
	for _, image := range append(wanted, sandbox) {
		name, tag, ok := strings.Cut(strings.TrimPrefix(image, registry+"/"), ":")
		if !ok || !strings.HasPrefix(image, registry+"/") {
			return nil, fmt.Errorf("%q is not an image of %s", image, registry)
		}
		switch name {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
			add(nestedImage{image, binaries.Component(name), tag})
		case "etcd":
			// "3.6.8-0": the number at the end counts the images made of one etcd.
			version, _, _ := strings.Cut(tag, "-")
			add(nestedImage{image, binaries.Etcd, "v" + version})
		case "pause":
			add(nestedImage{image, pause, ""})
		case "kube-proxy", "coredns/coredns":
		default:
			return nil, fmt.Errorf("kubeadm %s needs the image %s, which this program cannot make", versions[0], image)
		}
	}
	for _, v := range versions {
		add(nestedImage{registry + "/kube-apiserver:" + v, binaries.KubeAPIServer, v})
		if semver.Compare(v, binaries.OldestReference) >= 0 {
			add(nestedImage{kind.ReferenceImage + ":" + v, binaries.KubeAPIServerReference, v})
		}
	}
	add(nestedImage{kind.PodImage, inpod, ""})
	return all, nil
}

// sandboxImage finds the image of the pods' sandboxes in containerd's configuration, as kind does
// (pkg/build/nodeimage/helpers.go).
func sandboxImage(config string) (string, error) {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "sandbox_image" {
			return strings.Trim(strings.TrimSpace(value), `"'`), nil
		}
	}
	return "", fmt.Errorf("containerd's configuration names no sandbox_image")
}
