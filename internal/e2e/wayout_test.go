package e2e

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// kernelTunnels are the interfaces that the kernel itself adds to every new network namespace if
// the modules of that name are loaded. They are down, lead nowhere, and stay down. No route may
// name one. Source: net.core.fb_tunnels_only_for_init_net in the kernel's
// Documentation/admin-guide/sysctl/net.rst.
var kernelTunnels = []string{"tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0"}

// benchmarking is the block of addresses for the cables of servers (RFC 2544). No network routes
// it.
var benchmarking = netip.MustParsePrefix("198.18.0.0/15")

// During a run, no part of the run has an interface or a route that leads out of the machine, and
// the machine has no interface of the run.
func TestARunHasNoWayOut(t *testing.T) {
	before := interfaces(t, "self")
	begun := begin(t, "3 servers ready")
	processes := begun.consistsOf(t, wholeRun)
	ours := networkNamespace(t, "self")
	sandbox := networkNamespace(t, processes["sandboxed"][0].pid)
	seen := []string{ours, sandbox}
	if sandbox == ours {
		t.Fatal("the sandbox's first process is in the machine's network namespace")
	}
	if ns := networkNamespace(t, processes["etcd"][0].pid); ns != sandbox {
		t.Errorf("etcd is in network namespace %s, want the sandbox's own, %s", ns, sandbox)
	}
	var cables []netip.Prefix
	for _, p := range processes["kube-apiserver"] {
		ns := networkNamespace(t, p.pid)
		if slices.Contains(seen, ns) {
			t.Fatalf("kube-apiserver %s shares network namespace %s with the machine, the sandbox or another server", p.pid, ns)
		}
		seen = append(seen, ns)
		cables = append(cables, onlyACable(t, p.pid))
	}
	onlyCablesEnds(t, processes["sandboxed"][0].pid, cables)
	if during := interfaces(t, "self"); !slices.Equal(during, before) {
		t.Errorf("the machine's interfaces were %v and are now %v", before, during)
	}
	begun.end(t, syscall.SIGTERM)
}

// onlyACable checks that a server has its cable to the sandbox and no other interface, and returns
// the addresses of that cable.
func onlyACable(t *testing.T, pid string) netip.Prefix {
	t.Helper()
	if got := interfaces(t, pid); !slices.Equal(got, []string{"eth0", "lo"}) {
		t.Errorf("kube-apiserver %s has the interfaces %v, want lo and eth0", pid, got)
	}
	var cable, standard route
	for _, r := range routes(t, pid) {
		switch {
		case r.to.Bits() == 30 && !cable.to.IsValid():
			cable = r
		case r.to.Bits() == 0 && !standard.to.IsValid():
			standard = r
		default:
			t.Errorf("kube-apiserver %s has a route too many: %s", pid, r)
		}
	}
	if want := (route{"eth0", cable.to, netip.IPv4Unspecified()}); cable != want || !benchmarking.Overlaps(cable.to) {
		t.Fatalf("kube-apiserver %s: its cable is %s, want a /30 of %s on eth0", pid, cable, benchmarking)
	}
	if want := (route{"eth0", netip.MustParsePrefix("0.0.0.0/0"), cable.to.Addr().Next()}); standard != want {
		t.Errorf("kube-apiserver %s: its default route is %s, want %s", pid, standard, want)
	}
	return cable.to
}

// onlyCablesEnds checks that the sandbox has the other ends of the servers' cables and no other
// interface.
func onlyCablesEnds(t *testing.T, pid string, cables []netip.Prefix) {
	t.Helper()
	if got := interfaces(t, pid); !slices.Equal(got, []string{"lo", "to-a", "to-b", "to-c"}) {
		t.Errorf("the sandbox has the interfaces %v, want lo and one to each server", got)
	}
	var reached []netip.Prefix
	for _, r := range routes(t, pid) {
		if !strings.HasPrefix(r.device, "to-") || r.gateway != netip.IPv4Unspecified() {
			t.Errorf("the sandbox has a route that does not belong to a cable: %s", r)
		}
		reached = append(reached, r.to)
	}
	slices.SortFunc(cables, netip.Prefix.Compare)
	slices.SortFunc(reached, netip.Prefix.Compare)
	if !slices.Equal(reached, cables) {
		t.Errorf("the sandbox has routes to %v, want one to each server's cable, %v", reached, cables)
	}
}

func networkNamespace(t *testing.T, pid string) string {
	t.Helper()
	ns, err := os.Readlink("/proc/" + pid + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// interfaces lists the network interfaces that a process sees, sorted, without those that the
// kernel adds everywhere.
func interfaces(t *testing.T, pid string) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/" + pid + "/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(table)) {
		name, _, ok := strings.Cut(line, ":") // the two heading lines have no colon
		if name = strings.TrimSpace(name); ok && !slices.Contains(kernelTunnels, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// route is a line of the IPv4 routing table. Its gateway is 0.0.0.0, as the kernel writes it, if
// the route has none.
type route struct {
	device  string
	to      netip.Prefix
	gateway netip.Addr
}

func (r route) String() string {
	return r.to.String() + " via " + r.gateway.String() + " dev " + r.device
}

func routes(t *testing.T, pid string) []route {
	t.Helper()
	table, err := os.ReadFile("/proc/" + pid + "/net/route")
	if err != nil {
		t.Fatal(err)
	}
	var all []route
	for line := range strings.Lines(string(table)) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask …
		if f := strings.Fields(line); len(f) >= 8 && f[0] != "Iface" {
			mask := address(t, f[7]).As4()
			ones := bits.OnesCount32(binary.BigEndian.Uint32(mask[:]))
			all = append(all, route{f[0], netip.PrefixFrom(address(t, f[1]), ones), address(t, f[2])})
		}
	}
	return all
}

// address decodes an IPv4 address as /proc/net/route writes it: a number in the machine's own byte
// order.
func address(t *testing.T, s string) netip.Addr {
	t.Helper()
	number, err := hex.DecodeString(s)
	if err != nil || len(number) != 4 {
		t.Fatalf("%q is not an address of a routing table: %v", s, err)
	}
	var a [4]byte
	binary.NativeEndian.PutUint32(a[:], binary.BigEndian.Uint32(number))
	return netip.AddrFrom4(a)
}
