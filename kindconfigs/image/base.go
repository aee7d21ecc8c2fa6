package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// base returns the base of node images: systemd, containerd and what kubelets need.
func (b *builder) base(ctx context.Context) (string, error) {
	want := recipe("base", debianRecipe())
	// If the engine has the substitute, the image could not be pulled, and that is not tried again.
	switch {
	case b.engine.has(ctx, kindBaseImage, ""):
		return kindBaseImage, nil
	case b.engine.has(ctx, baseImage, want):
		return baseImage, nil
	}
	if err := b.checkSpace(); err != nil {
		return "", err
	}
	if b.pulled(ctx, kindBaseImage) {
		return kindBaseImage, nil
	}
	debian, err := b.debian(ctx)
	if err != nil {
		return "", err
	}
	say("making %s, a substitute for %s", baseImage, kindBaseImage)
	files, err := b.baseFiles(ctx)
	if err != nil {
		return "", err
	}
	return baseImage, b.engine.build(ctx, imageBuild{
		from: debian, to: baseImage, recipe: want, files: files, script: source("node/base.sh"),
		// This variable tells systemd that it is in a container. systemd stops at this signal
		// (systemd.io/CONTAINER_INTERFACE).
		options: []string{"--env=container=docker", "--stop-signal=SIGRTMIN+3"},
		changes: []string{`ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`},
	})
}

// pulled has the engine pull an image if it may, and reports whether it is there.
func (b *builder) pulled(ctx context.Context, image string) bool {
	if !b.pull {
		return false
	}
	say("pulling %s", image)
	if _, err := kind.Docker(ctx, nil, "pull", "--quiet", image); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		say("not pulled: %s", line)
		return false
	}
	return true
}

// baseFiles returns kind's own files, and programs built from Go modules. crictl is not published
// as a module, so 'kind load' does not work on these nodes. There is no rootless snapshotter
// either.
func (b *builder) baseFiles(ctx context.Context) ([]file, error) {
	module, err := kindSource(ctx)
	if err != nil {
		return nil, err
	}
	files, err := kindFiles(os.DirFS(filepath.Join(module, "images", "base", "files")))
	if err != nil {
		return nil, fmt.Errorf("read the files of kind %s: %w", kindVersion, err)
	}
	for _, p := range []struct {
		component binaries.Component
		version   string
		dir       string
	}{
		{binaries.Containerd, containerdVersion, "usr/local/bin"},
		{binaries.ContainerdShim, containerdVersion, "usr/local/bin"},
		{binaries.ContainerdCtr, containerdVersion, "usr/local/bin"},
		{binaries.CNIHostLocal, cniPluginsVersion, "opt/cni/bin"},
		{binaries.CNILoopback, cniPluginsVersion, "opt/cni/bin"},
		{binaries.CNIPortmap, cniPluginsVersion, "opt/cni/bin"},
		{binaries.CNIPtp, cniPluginsVersion, "opt/cni/bin"},
	} {
		got, err := b.store.Get(ctx, p.component, p.version)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: p.dir + "/" + string(p.component), mode: 0o755, from: got.Path})
	}
	return files, nil
}

// kindFiles gives the files of kind's images/base/files the modes that its Dockerfile gives them.
func kindFiles(root fs.FS) ([]file, error) {
	programs := []string{"usr/local/bin", "kind/bin"}
	var files []file
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f := file{name: name, mode: 0o644, content: text}
		if slices.ContainsFunc(programs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") }) {
			f.mode = 0o755
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// kindSource is the directory of kind's module, which the go command downloads and checks.
func kindSource(ctx context.Context) (string, error) {
	module := "sigs.k8s.io/kind@" + kindVersion
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var mod struct{ Dir, Error string }
	if broken := json.Unmarshal(out, &mod); broken == nil && mod.Error != "" {
		err = errors.New(mod.Error)
	}
	if err != nil {
		return "", fmt.Errorf("get the module %s: %w", module, err)
	}
	return mod.Dir, nil
}
