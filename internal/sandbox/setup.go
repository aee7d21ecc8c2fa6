package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Config is the configuration of a sandbox by its first process.
type Config struct {
	// Scratch is an existing directory over which a file system in memory is mounted, for keys and
	// etcd's data. They never reach a disk, unless the machine swaps, and vanish with the sandbox.
	Scratch string
	// Hosts maps names to addresses for /etc/hosts. No other name can be resolved.
	Hosts map[string]string
}

// Setup prepares the namespaces that [Enter] created: private mounts, a loopback interface, no IP
// forwarding. The first process of the sandbox must call it before any other goroutine uses the
// network. After Setup, this process, and so all others, end when the outer process ends.
func Setup(config Config) error {
	if os.Getpid() != 1 {
		return errors.New("set up sandbox: not the first process of a sandbox")
	}
	watchLifeline()
	if err := mounts(config); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte("skewproof")); err != nil {
		return unsupported("set the host name", err)
	}
	if err := bringUp("lo"); err != nil {
		return unsupported("bring up the loopback interface", err)
	}
	return forbidForwarding()
}

func watchLifeline() {
	syscall.CloseOnExec(lifelineFD) // children do not inherit it
	lifeline := os.NewFile(lifelineFD, "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, lifeline) // ends when the last writer, the outer process, has ended
		os.Exit(137)
	}()
}

func mounts(config Config) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return unsupported("make mounts private", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return unsupported("mount /proc", err)
	}
	if err := unix.Mount("tmpfs", config.Scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return unsupported("mount a file system in memory at "+config.Scratch, err)
	}
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost skewproof\n::1 localhost\n")
	for name, address := range config.Hosts {
		fmt.Fprintf(&hosts, "%s %s\n", address, name)
	}
	// A lookup must fail here, and must not reach the machine's resolver. An empty resolv.conf is
	// not enough. UNIX sockets work across network namespaces, and by them glibc asks the daemons
	// in nsswitch.conf (resolve, mdns). It asks nscd even before it reads nsswitch.conf.
	for target, content := range map[string]string{
		"/etc/hosts":           hosts.String(),
		"/etc/resolv.conf":     "",
		"/etc/nsswitch.conf":   nameServices,
		"/var/run/nscd/socket": "",
	} {
		if err := cover(target, content, config.Scratch); err != nil {
			return err
		}
	}
	return nil
}

// nameServices is an nsswitch.conf(5) whose only source is files.
const nameServices = "passwd: files\ngroup: files\nhosts: files\n"

// cover mounts a file over a file or socket of the machine, in this mount namespace only.
func cover(target, content, scratch string) error {
	resolved, err := os.Stat(target)
	if err != nil || !resolved.Mode().IsRegular() && resolved.Mode().Type() != os.ModeSocket {
		return nil //nolint:nilerr // no file to cover
	}
	own := scratch + "/" + strings.ReplaceAll(strings.TrimPrefix(target, "/"), "/", "-")
	if err := os.WriteFile(own, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write the sandbox's %s: %w", target, err)
	}
	if err := unix.Mount(own, target, "", unix.MS_BIND, ""); err != nil {
		return unsupported("bind the sandbox's "+target, err)
	}
	return nil
}

func bringUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// forwarding lists the switches of IP forwarding by address family. "default" is for interfaces
// that are added later.
var forwarding = map[string][]string{
	"/proc/sys/net/ipv4": {"ip_forward", "conf/all/forwarding", "conf/default/forwarding"},
	"/proc/sys/net/ipv6": {"conf/all/forwarding", "conf/default/forwarding"},
}

// forbidForwarding ensures that servers reach each other only through the switch. A new network
// namespace may inherit the settings of the machine (net.core.devconf_inherit_init_net), and
// container engines switch forwarding on.
func forbidForwarding() error {
	for family, switches := range forwarding {
		if _, err := os.Stat(family + "/conf"); errors.Is(err, os.ErrNotExist) && strings.HasSuffix(family, "ipv6") {
			continue // a kernel without IPv6
		}
		for _, s := range switches {
			if err := switchOff(family + "/" + s); err != nil {
				return unsupported("switch off IP forwarding", err)
			}
		}
	}
	return nil
}

// switchOff writes 0 to path. A file that cannot be written must contain 0.
func switchOff(path string) error {
	err := os.WriteFile(path, []byte("0\n"), 0o644)
	if err == nil {
		return nil
	}
	if value, readErr := os.ReadFile(path); readErr == nil && strings.TrimSpace(string(value)) == "0" {
		return nil
	}
	return err
}

func unsupported(doing string, err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EROFS) {
		return &UnsupportedError{Doing: doing + " inside the sandbox", Err: err}
	}
	return fmt.Errorf("%s inside the sandbox: %w", doing, err)
}
