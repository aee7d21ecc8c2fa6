package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// debianSuite is the one that kind's images/base/Dockerfile builds on.
const debianSuite = "trixie"

// debianPackages are those of kind's images/base/Dockerfile, without the storage that nothing here uses, and with what a node has from elsewhere
// there: runc, socat for port-forward, and an init.
var debianPackages = []string{
	"systemd", "systemd-sysv", "dbus",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "ebtables", "ipset", "socat",
	"libseccomp2", "runc", "e2fsprogs",
	"bash", "ca-certificates", "curl", "jq", "procps", "hostname",
}

// debianTrash is what an image has no use for.
var debianTrash = []string{
	"var/cache/apt/archives", "var/cache/debconf", "var/lib/apt/lists", "var/log", "tmp", "var/tmp",
	"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
}

// debian returns the image of a Debian with those packages, from the engine, from the cache, or from Debian's mirror.
func (b *builder) debian(ctx context.Context) (string, error) {
	want := debianRecipe()
	if b.engine.has(ctx, debianImage, want) {
		return debianImage, nil
	}
	archive := filepath.Join(b.cache, "debian-"+debianSuite+"-"+want+".tar.gz")
	if _, err := os.Stat(archive); errors.Is(err, os.ErrNotExist) {
		if err := b.bootstrap(ctx, archive); err != nil {
			return "", err
		}
	}
	_, err := b.engine.docker(ctx, nil, "import", "--change", "LABEL "+recipeLabel+"="+want,
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", archive, debianImage)
	if err != nil {
		return "", fmt.Errorf("bring Debian's packages into the engine: %w; should %s be damaged, remove it", err, archive)
	}
	return debianImage, nil
}

func debianRecipe() string {
	sum := sha256.Sum256([]byte(strings.Join(append(append([]string{debianSuite}, debianPackages...), debianTrash...), "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// bootstrap puts a Debian together and packs it.
func (b *builder) bootstrap(ctx context.Context, archive string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return fmt.Errorf("%w: kind's own images cannot be pulled here, and to put them together takes debootstrap: 'apt-get install debootstrap'", errNeeds)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: kind's own images cannot be pulled here, and to put them together takes root, for debootstrap: run this "+
			"with sudo -E, or where %s can be pulled", errNeeds, kindBaseImage)
	}
	work, err := os.MkdirTemp(b.cache, "debootstrap-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	root := filepath.Join(work, "root")
	say("getting Debian %s from %s (a few minutes)", debianSuite, b.mirror)
	start := time.Now()
	if err := privately(ctx, "debootstrap", "--variant=minbase", "--force-check-gpg", "--include="+strings.Join(debianPackages, ","),
		debianSuite, root, b.mirror); err != nil {
		return fmt.Errorf("%w: %w; '--debian-mirror' names another mirror", errNeeds, err)
	}
	for _, dir := range debianTrash {
		entries, err := filepath.Glob(filepath.Join(root, dir, "*"))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := os.RemoveAll(e); err != nil {
				return err
			}
		}
	}
	packed := filepath.Join(work, "packed")
	if err := privately(ctx, "tar", "--create", "--file="+packed, "--use-compress-program=gzip -1", "--numeric-owner", "--xattrs",
		"--xattrs-include=*", "--one-file-system", "--directory="+root, "."); err != nil {
		return err
	}
	say("Debian is there, after %s", time.Since(start).Round(time.Second))
	return os.Rename(packed, archive)
}

// privately runs a program in a mount namespace of its own: debootstrap mounts /proc in what it makes, and an interrupted one leaves it so.
func privately(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, tail(string(out)))
	}
	return nil
}
