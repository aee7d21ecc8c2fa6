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

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// debianSuite is the suite on which kind's images/base/Dockerfile builds.
const debianSuite = "trixie"

// debianPackages are those of kind's images/base/Dockerfile, without storage, and with programs
// that kind gets from another source: runc, socat for port-forward, and an init.
var debianPackages = []string{
	"systemd", "systemd-sysv", "dbus",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "ebtables", "ipset", "socat",
	"libseccomp2", "runc", "e2fsprogs",
	"bash", "ca-certificates", "curl", "jq", "procps", "hostname",
}

// debianUnused are directories that an image does not need.
var debianUnused = []string{
	"var/cache/apt/archives", "var/cache/debconf", "var/lib/apt/lists", "var/log", "tmp", "var/tmp",
	"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
}

// debian returns a Debian image with these packages, from the engine, the cache or the mirror.
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
	_, err := kind.Docker(ctx, nil, "import", "--change", "LABEL "+recipeLabel+"="+want,
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", archive, debianImage)
	if err != nil {
		return "", fmt.Errorf("import Debian's packages into the engine: %w; if %s is damaged, remove it", err, archive)
	}
	return debianImage, nil
}

func debianRecipe() string {
	sum := sha256.Sum256([]byte(strings.Join(append(append([]string{debianSuite}, debianPackages...), debianUnused...), "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

func (b *builder) bootstrap(ctx context.Context, archive string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return fmt.Errorf("%w: kind's own images cannot be pulled here, and making equal ones takes debootstrap: 'apt-get install debootstrap'",
			errNeeds)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: kind's own images cannot be pulled here, and making equal ones takes root, for debootstrap: run this "+
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
	if err := inMountNamespace(ctx, "debootstrap", "--variant=minbase", "--force-check-gpg", "--include="+strings.Join(debianPackages, ","),
		debianSuite, root, b.mirror); err != nil {
		return fmt.Errorf("%w: %w; '--debian-mirror' names another mirror", errNeeds, err)
	}
	for _, dir := range debianUnused {
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
	if err := inMountNamespace(ctx, "tar", "--create", "--file="+packed, "--use-compress-program=gzip -1", "--numeric-owner", "--xattrs",
		"--xattrs-include=*", "--one-file-system", "--directory="+root, "."); err != nil {
		return err
	}
	say("Debian was made in %s", time.Since(start).Round(time.Second))
	return os.Rename(packed, archive)
}

// inMountNamespace runs a program in a separate mount namespace, because debootstrap may leave
// mounts.
func inMountNamespace(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, kind.Tail(string(out)))
	}
	return nil
}
