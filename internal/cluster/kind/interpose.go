package kind

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
)

// Rules in each node redirect its connections to the fault fabric: those to the secure ports of
// other nodes, and those of its kube-apiserver to its own etcd member. The fabric listens at our
// address on the cluster's network, one port for each destination, and knows the nodes by their
// addresses. Kubelets and others that use kind's load balancer are not redirected, and neither are
// etcd's members among themselves. The rules end with the node's network namespace.

const chain = "SKEWPROOF"

// redirects are the redirections of one node to the fabric.
type redirects struct {
	own   netip.Addr                        // the node's address
	peers map[netip.AddrPort]netip.AddrPort // address of another node → where the fabric listens for it
	etcd  netip.AddrPort                    // where the fabric listens for etcd
}

// rules returns the arguments of iptables, one call for each line. A packet with a loopback address
// leaves a node only if the node's interface allows it. The rules replace that address by the
// address of the node.
func (r redirects) rules() []string {
	rules := []string{"-N " + chain, "-A OUTPUT -p tcp -j " + chain}
	for _, dialled := range slices.SortedFunc(maps.Keys(r.peers), netip.AddrPort.Compare) {
		rules = append(rules, fmt.Sprintf("-A %s -p tcp -d %s --dport %d -j DNAT --to-destination %s", chain, dialled.Addr(), dialled.Port(),
			r.peers[dialled]))
	}
	return append(rules,
		fmt.Sprintf("-A %s -p tcp -d 127.0.0.1 --dport %d -j DNAT --to-destination %s", chain, etcdPort, r.etcd),
		fmt.Sprintf("-A POSTROUTING -p tcp -s 127.0.0.0/8 -d %s --dport %d -j SNAT --to-source %s", r.etcd.Addr(), r.etcd.Port(), r.own),
	)
}

func (r redirects) apply(ctx context.Context, node string) error {
	lines := "echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet\n"
	for _, rule := range r.rules() {
		lines += "iptables -w -t nat " + rule + "\n"
	}
	if _, err := script(ctx, node, lines); err != nil {
		return fmt.Errorf("redirect the connections of node %s to the fault fabric: %w", node, err)
	}
	// Check now: otherwise a firewall on this machine would be noticed only after minutes.
	if _, err := script(ctx, node, `timeout 5 bash -c "exec 3<>/dev/tcp/$1/$2"`, r.etcd.Addr().String(),
		fmt.Sprint(r.etcd.Port())); err != nil {
		return fmt.Errorf("node %s cannot reach the fault fabric at %s, which is this machine's address on the cluster's network: "+
			"does a firewall (ufw, firewalld) refuse what comes from Docker's bridges?", node, r.etcd)
	}
	return nil
}

// interpose starts the fabric and redirects every node's connections to it. It is called before
// anything runs in the nodes, so that no connection bypasses the fabric.
func (c *Cluster) interpose(ctx context.Context) error {
	all, err := addresses(ctx, c.config.Name)
	if err != nil {
		return err
	}
	links := fabric.Config{Now: c.config.Recorder.Now, Log: c.linksLog, Upstreams: map[string]netip.AddrPort{}}
	etcd := fabric.Destination{Name: fault.Etcd, Advertised: netip.AddrPortFrom(c.gateway, 0)}
	for _, s := range c.Servers {
		s.address = all[s.place.Node]
		links.Sources = append(links.Sources, fabric.Source{Name: s.Name, Addr: s.address})
		links.Destinations = append(links.Destinations,
			fabric.Destination{Name: s.Name, Advertised: netip.AddrPortFrom(c.gateway, 0), Real: s.real()})
		etcd.Real = netip.AddrPortFrom(s.address, etcdPort)
		links.Upstreams[fabric.LinkName(s.Name, fault.Etcd)] = etcd.Real // each has its own
	}
	links.Destinations = append(links.Destinations, etcd)
	if c.fabric, err = fabric.New(links); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range c.Servers {
		group.Go(func() error { return c.redirects(s).apply(ctx, s.place.Node) })
	}
	return group.Wait()
}

func (c *Cluster) redirects(s *server) redirects {
	r := redirects{own: s.address, peers: map[netip.AddrPort]netip.AddrPort{}, etcd: c.fabric.Advertised(fault.Etcd)}
	for _, other := range c.Servers {
		if other != s {
			r.peers[other.real()] = c.fabric.Advertised(other.Name)
		}
	}
	return r
}

// checkInterposed returns an error if a node has a connection to the secure port of another node
// that bypasses the fabric. The far end of such a connection has the address of the node instead of
// ours.
func (c *Cluster) checkInterposed(ctx context.Context) error {
	for _, s := range c.Servers {
		out, err := inNode(ctx, s.place.Node, "ss", "--tcp", "--numeric", "--no-header", "state", "established", "sport", "=",
			fmt.Sprint(securePort))
		if err != nil {
			return err
		}
		for _, other := range c.Servers {
			if other != s && connectedFrom(out, other.address) {
				return fmt.Errorf("%s has a connection to %s around the fault fabric: faults would have no effect on it", other.Name, s.Name)
			}
		}
	}
	return nil
}

// connectedFrom reports whether ss(8) lists an address as a far end. For a listener of both IP
// families, ss shows IPv4 addresses in IPv6 form.
func connectedFrom(listed string, address netip.Addr) bool {
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if far, err := netip.ParseAddrPort(fields[len(fields)-1]); err == nil && far.Addr().Unmap() == address {
			return true
		}
	}
	return false
}
