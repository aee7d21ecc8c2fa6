package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// nodeImage returns the node image with these versions, which are sorted.
func (b *builder) nodeImage(ctx context.Context, versions []string) (string, error) {
	to := kind.ImageName(versions)
	base, err := b.base(ctx)
	if err != nil {
		return "", err
	}
	parts := slices.Concat([]string{"node", b.engine.id(ctx, base)}, versions, programNames())
	for _, v := range versions {
		parts = append(parts, binaries.SourceHash(binaries.Ref{Component: binaries.KubeAPIServerReference, Version: binaries.Version(v)}))
	}
	want := recipe(parts...)
	// A binary of the user's own may have changed.
	if len(b.store.Overrides) == 0 && b.engine.has(ctx, to, want) {
		return to, nil
	}
	if err := b.checkSpace(); err != nil {
		return "", err
	}
	say("making %s on %s", to, base)
	files, err := b.nodePrograms(ctx, versions[0])
	if err != nil {
		return "", err
	}
	images, remove, err := b.nestedImages(ctx, base, versions)
	if err != nil {
		return "", err
	}
	defer remove()
	files = append(files, images...)
	files = append(files,
		file{name: "kind/version", mode: 0o644, content: []byte(versions[0])},
		file{name: "kind/manifests/default-cni.yaml", mode: 0o644, content: source("node/default-cni.yaml")},
		file{name: "etc/cni/net.d/10-skewproof.conflist", mode: 0o644, content: source("node/10-skewproof.conflist")},
	)
	return to, b.engine.build(ctx, imageBuild{
		from: base, to: to, recipe: want, files: files, script: source("node/node.sh"),
		changes: []string{`ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`},
	})
}

// onNodes are the programs in the node image itself, of the oldest version. A test starts
// kube-proxy there. kubeadm would run it in a pod, whose image also needs iptables.
var onNodes = []binaries.Component{binaries.Kubeadm, binaries.Kubectl, binaries.Kubelet, binaries.KubeProxy}

func programNames() (names []string) {
	for _, c := range onNodes {
		names = append(names, string(c))
	}
	return names
}

func (b *builder) nodePrograms(ctx context.Context, version string) ([]file, error) {
	var files []file
	for _, c := range onNodes {
		got, err := b.store.Get(ctx, c, version)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "usr/bin/" + string(c), mode: 0o755, from: got.Path})
	}
	return files, nil
}

// nestedImages makes the archives of the nested images, in a directory that remove removes.
func (b *builder) nestedImages(ctx context.Context, base string, versions []string) (files []file, remove func(), err error) {
	config, err := kind.Docker(ctx, nil, "run", "--rm", "--network=none", "--entrypoint=cat", base, "/etc/containerd/config.toml")
	if err != nil {
		return nil, nil, fmt.Errorf("read containerd's configuration in %s: %w", base, err)
	}
	sandbox, err := sandboxImage(config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", base, err)
	}
	wanted, err := b.wantedImages(ctx, versions[0])
	if err != nil {
		return nil, nil, err
	}
	all, err := contents(wanted, sandbox, versions)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(b.cache, "images-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	for _, image := range all {
		program, err := b.program(ctx, image, dir)
		if err == nil {
			err = writeArchive(filepath.Join(dir, image.archive()), image.tag, program, image.program())
		}
		if err != nil {
			remove()
			return nil, nil, err
		}
		files = append(files, file{name: "skewproof/images/" + image.archive(), mode: 0o644, from: filepath.Join(dir, image.archive())})
	}
	return files, remove, nil
}

func (b *builder) wantedImages(ctx context.Context, version string) ([]string, error) {
	kubeadm, err := b.store.Get(ctx, binaries.Kubeadm, version)
	if err != nil {
		return nil, err
	}
	return output(ctx, kubeadm.Path, "config", "images", "list", "--kubernetes-version="+version)
}

// program returns the executable of a nested image, which is built in dir if it is our own.
func (b *builder) program(ctx context.Context, image nestedImage, dir string) (string, error) {
	if image.isOwn() {
		to := filepath.Join(dir, string(image.component))
		return to, buildOwn(ctx, string(image.component), to)
	}
	got, err := b.store.Get(ctx, image.component, image.version)
	if err != nil && image.component == binaries.Etcd {
		err = fmt.Errorf("%w\n  (kubeadm of the oldest version asks for it, as %s)", err, image.tag)
	}
	return got.Path, err
}
