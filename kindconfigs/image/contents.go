package main

import (
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
)

// inside is a container image inside the node image. It holds one program, which has the component's name.
type inside struct {
	tag       string
	component binaries.Component
	version   string
}

// pause is the one program in the images inside that is our own; it has no version.
const pause binaries.Component = "pause"

// archive is its file name while it is brought into a node image.
func (i inside) archive() string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(i.tag) + ".tar"
}

// contents are the images inside a node image. wanted is what kubeadm of the oldest version says that it needs ('kubeadm config images list'),
// sandbox the image that containerd's configuration names for the pods' sandboxes; versions are sorted. kube-proxy and CoreDNS are left
// out: they serve pods, and the control plane is the subject.
func contents(wanted []string, sandbox string, versions []string) ([]inside, error) {
	var all []inside
	add := func(i inside) {
		for _, have := range all {
			if have.tag == i.tag {
				return
			}
		}
		all = append(all, i)
	}
	for _, image := range append(wanted, sandbox) {
		name, tag, ok := strings.Cut(strings.TrimPrefix(image, registry+"/"), ":")
		if !ok || !strings.HasPrefix(image, registry+"/") {
			return nil, fmt.Errorf("%q is not an image of %s", image, registry)
		}
		switch name {
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
			add(inside{image, binaries.Component(name), tag})
		case "etcd":
			// "3.6.8-0": the number at the end counts the images made of one etcd.
			version, _, _ := strings.Cut(tag, "-")
			add(inside{image, binaries.Etcd, "v" + version})
		case "pause":
			add(inside{image, pause, ""})
		case "kube-proxy", "coredns/coredns":
		default:
			return nil, fmt.Errorf("kubeadm %s needs the image %s, of which nothing is known here", versions[0], image)
		}
	}
	for _, v := range versions {
		add(inside{registry + "/kube-apiserver:" + v, binaries.KubeAPIServer, v})
	}
	return all, nil
}

// sandboxImage finds the image of the pods' sandboxes in containerd's configuration. kind looks for it in the same way
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
