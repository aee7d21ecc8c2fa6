package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// The tests re-execute this test binary, as skewproof re-executes itself. The variable names the
// role of the copy.
const roleVariable = "SKEWPROOF_SANDBOX_TEST"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		// Every program built with -race otherwise sleeps for a second before it exits, and these
		// tests start many.
		_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
		os.Exit(m.Run())
	}
	if err := roles[role](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var roles = map[string]func() error{
	"isolated": isolated,
	"hosts":    hosts,
	"scratch":  scratch,
	"linger":   linger,
	"outer":    outer,

	"forwarding": forbidden,
	"covered":    covered,
	"stubborn":   stubborn,
	"trial":      trial,
	"nowhere":    nowhere,
}

func run(t *testing.T, role string, env ...string) (string, int, error) {
	t.Helper()
	return runCommand(t.Context(), t, role, Command{Env: env})
}

// runCommand runs a role with the other settings in c. It skips the test if the machine allows no
// namespaces.
func runCommand(ctx context.Context, t *testing.T, role string, c Command) (string, int, error) {
	t.Helper()
	var out bytes.Buffer
	// First, so that the caller's SCRATCH wins.
	c.Env = append([]string{roleVariable + "=" + role, "SCRATCH=" + t.TempDir()}, c.Env...)
	if c.Stdout == nil {
		c.Stdout = &out
	}
	c.Stderr = &out
	code, err := Enter(ctx, c)
	skipUnsupported(t, err, out.String())
	return out.String(), code, err
}

func skipUnsupported(t *testing.T, err error, out string) {
	t.Helper()
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) || strings.Contains(out, "sysctl -w user.max_user_namespaces") {
		t.Skipf("this machine allows no namespaces: %v %s", err, out)
	}
}

func mustRun(t *testing.T, role string, env ...string) string {
	t.Helper()
	out, code, err := run(t, role, env...)
	if err != nil || code != 0 {
		t.Fatalf("role %s: exit code %d, error %v, output:\n%s", role, code, err, out)
	}
	return out
}

func setup() error { return Setup(Config{Scratch: os.Getenv("SCRATCH")}) }

// isolated checks that the sandbox has no connection to the outside: it has only its own
// interfaces, and no route to an outside address.
func isolated() error {
	// The files with which the sandbox covers the machine's files. It covers only files that the
	// machine has, so this is checked before setup.
	files := map[string]string{
		"/etc/hosts":         "127.0.0.1 localhost skewproof\n::1 localhost\n198.19.0.1 peer\n",
		"/etc/resolv.conf":   "",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
	for path := range files {
		if _, err := os.Stat(path); err != nil {
			delete(files, path) // nothing to cover
		}
	}
	if err := Setup(Config{Scratch: os.Getenv("SCRATCH"), Hosts: map[string]string{"peer": "198.19.0.1"}}); err != nil {
		return err
	}
	for path, want := range files {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			return fmt.Errorf("%s reads %q, error %v; want %q", path, got, err, want)
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		if flags := l.Attrs().Flags; flags&net.FlagUp != 0 && flags&net.FlagLoopback == 0 {
			return fmt.Errorf("interface %s is up and is not a loopback", l.Attrs().Name)
		}
	}
	for _, outside := range []string{"192.0.2.1", "10.0.0.1", "8.8.8.8", "2001:db8::1"} {
		// This only reads the routing table; it sends nothing.
		if routes, err := netlink.RouteGet(net.ParseIP(outside)); err == nil {
			return fmt.Errorf("there is a route to %s: %v", outside, routes)
		}
	}
	if _, ok := files["/etc/hosts"]; ok {
		if addresses, err := net.LookupHost("peer"); err != nil || !slices.Equal(addresses, []string{"198.19.0.1"}) {
			return fmt.Errorf("the name of a host was resolved to %v, error %v; want 198.19.0.1", addresses, err)
		}
	}
	// RFC 6761, section 6.4: nobody can own this name.
	if addresses, err := net.LookupHost("peer.invalid"); err == nil {
		return fmt.Errorf("an unknown name was resolved to %v", addresses)
	}
	return nil
}

func TestNoWayOut(t *testing.T) {
	for _, resolver := range []string{"go", "cgo"} { // a test built without cgo uses Go's resolver for both
		t.Run(resolver, func(t *testing.T) { mustRun(t, "isolated", "GODEBUG=netdns="+resolver) })
	}
}

// hosts checks that two hosts have their own names and addresses. Each must reach the addresses on
// which the run listens, and be seen there with its own address. They must not reach each other.
func hosts() error {
	if err := setup(); err != nil {
		return err
	}
	advertised := netip.MustParseAddr("198.19.0.1")
	if err := Own(advertised); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", netip.AddrPortFrom(advertised, 6443).String())
	if err != nil {
		return err
	}
	a, err := NewHost("a", netip.MustParsePrefix("198.18.0.4/30"))
	if err != nil {
		return err
	}
	b, err := NewHost("b", netip.MustParsePrefix("198.18.0.8/30"))
	if err != nil {
		return err
	}
	for _, h := range []*Host{a, b} {
		var name bytes.Buffer
		cmd := exec.Command("uname", "-n")
		cmd.Stdout = &name
		if err := h.Start(cmd); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return err
		}
		if got := strings.TrimSpace(name.String()); got != h.Name {
			return fmt.Errorf("host %q calls itself %q", h.Name, got)
		}
		accepted := make(chan string, 1)
		go func() {
			if c, err := ln.Accept(); err == nil {
				accepted <- c.RemoteAddr().(*net.TCPAddr).IP.String()
				_ = c.Close()
			}
		}()
		err := h.do(func() error {
			c, err := net.DialTimeout("tcp", ln.Addr().String(), 10*time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("host %q cannot reach the run: %w", h.Name, err)
		}
		if from := <-accepted; from != h.Address.String() {
			return fmt.Errorf("host %q was seen as %s, want %s", h.Name, from, h.Address)
		}
	}
	// nsenter(1) would enter the run's own network, and not a host's.
	theirs, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if ours, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || ours != theirs {
		return fmt.Errorf("the process stands in /proc with network %s, the run's own is %s (error %v)", theirs, ours, err)
	}
	// b listens. The run must reach it, but a must not, because all traffic between servers goes
	// through the switch.
	var bln net.Listener
	err = b.do(func() (err error) {
		bln, err = net.Listen("tcp", netip.AddrPortFrom(b.Address, 6443).String())
		return err
	})
	if err != nil {
		return err
	}
	c, err := net.DialTimeout("tcp", bln.Addr().String(), 10*time.Second)
	if err != nil {
		return fmt.Errorf("the run cannot reach host b: %w", err)
	}
	_ = c.Close()
	sneaked := a.do(func() error { _, err := net.DialTimeout("tcp", bln.Addr().String(), 500*time.Millisecond); return err })
	if sneaked == nil {
		return errors.New("host a reached host b around the switch")
	}
	return nil
}

func TestHosts(t *testing.T) { mustRun(t, "hosts") }

func scratch() error {
	if err := setup(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(os.Getenv("SCRATCH"), "key"), []byte("secret"), 0o600)
}

func TestScratchLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, "scratch", "SCRATCH="+dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Fatalf("left in the scratch directory: %v, error %v", left, err)
	}
}

// linger starts a child that would run for ever, prints that it is ready, and never ends by itself.
func linger() error {
	if err := setup(); err != nil {
		return err
	}
	host, err := NewHost("a", netip.MustParsePrefix("198.18.0.4/30"))
	if err != nil {
		return err
	}
	child := exec.Command("sleep", os.Getenv("MARK"))
	if err := host.Start(child); err != nil {
		return err
	}
	fmt.Println("lingering")
	return child.Wait()
}

// outer is the process that the tests below kill. Like skewproof, it runs a sandbox.
func outer() error {
	_, err := Enter(context.Background(), Command{Env: []string{roleVariable + "=linger"}, Stdout: os.Stdout, Stderr: os.Stderr})
	return err
}

func TestNothingOutlivesTheHarness(t *testing.T) {
	mustRun(t, "isolated") // skips where namespaces are not allowed
	for i, kill := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(kill.String(), func(t *testing.T) {
			// A unique sleep duration identifies our child among the machine's processes.
			mark := strconv.Itoa(1000000 + os.Getpid()*10 + i)
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), roleVariable+"=outer", "MARK="+mark, "SCRATCH="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "lingering\n" {
				t.Fatalf("the sandbox said %q, error %v", line, err)
			}
			if !sleeping(t, mark) {
				t.Fatal("the child of the sandbox is not among the machine's processes: this test sees nothing")
			}
			if err := cmd.Process.Signal(kill); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
			_ = cmd.Wait()
			deadline := time.Now().Add(20 * time.Second)
			for sleeping(t, mark) {
				if time.Now().After(deadline) {
					t.Fatal("the child outlived the harness by 20 s")
				}
			}
		})
	}
}

// sleeping reports whether a live process "sleep mark" exists.
func sleeping(t *testing.T, mark string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && string(line) == "sleep\x00"+mark+"\x00" {
			return true
		}
	}
	return false
}

// TestWithoutRoot runs all other tests as an ordinary user, because most users are not root.
func TestWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests run without root already")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("no unprivileged user to run as: %v", err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	// Only root can read the directory of the test binary, so the user "nobody" gets a copy.
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sandbox.test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(temp, uid, gid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.skip=^TestWithoutRoot$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "HOME="+temp)
	cmd.Dir = temp
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as %s: %v\n%s", nobody.Username, err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("this machine allows no namespaces to ordinary users:\n%s", out)
	}
}
