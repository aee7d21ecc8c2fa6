package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// forbidden checks that Setup switches forwarding off if it is on at the start of the namespace, as
// on a machine with net.core.devconf_inherit_init_net. Later interfaces must not switch it on
// again.
func forbidden() error {
	// The machine's /proc may be read-only here, as in containers; a newly mounted /proc is not.
	proc := os.Getenv("SCRATCH")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return unsupported("make mounts private", err)
	}
	if err := unix.Mount("proc", proc, "proc", 0, ""); err != nil {
		return unsupported("mount a /proc", err)
	}
	switches, err := filepath.Glob(proc + "/sys/net/ipv[46]/conf/*/forwarding")
	if err != nil || len(switches) == 0 {
		return fmt.Errorf("find the switches of forwarding: found %v, error %v", switches, err)
	}
	for _, path := range switches {
		if err := os.WriteFile(path, []byte("1\n"), 0o644); err != nil {
			return fmt.Errorf("switch forwarding on to see it switched off: %w", err)
		}
	}
	if err := setup(); err != nil {
		return err
	}
	if _, err := NewHost("a", netip.MustParsePrefix("198.18.0.4/30")); err != nil {
		return err
	}
	return allOff()
}

// allOff checks every forwarding switch of the kernel, including those of single interfaces.
func allOff() error {
	paths, err := filepath.Glob("/proc/sys/net/ipv[46]/conf/*/forwarding")
	if err != nil {
		return err
	}
	for _, path := range append(paths, "/proc/sys/net/ipv4/ip_forward") {
		if value, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(value)) != "0" {
			return fmt.Errorf("%s reads %q, error %v; want 0", path, value, err)
		}
	}
	return nil
}

func TestForwardingIsOff(t *testing.T) { mustRun(t, "forwarding") }

// covered checks that a daemon's socket, such as nscd's, cannot be reached once it is covered.
func covered() error {
	path := filepath.Join(os.Getenv("SOCKETS"), "socket")
	if err := setup(); err != nil {
		return err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("before it is covered: %w", err)
	}
	_ = c.Close()
	if err := cover(path, "", os.Getenv("SCRATCH")); err != nil {
		return err
	}
	if _, err := net.Dial("unix", path); err == nil {
		return fmt.Errorf("%s was reached although it is covered", ln.Addr())
	}
	return nil
}

func TestCoveredSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // t.TempDir's paths may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mustRun(t, "covered", "SOCKETS="+dir)
}
