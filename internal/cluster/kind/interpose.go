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

// A node's connections are led through the fault fabric by rules in the node itself: those to another node's front door, and those of its
// kube-apiserver to its own etcd member. The fabric listens at our address on the cluster's network, one port for each destination, and knows
// the nodes by their addresses. Kubelets and others that go through kind's load balancer are left alone, and so are etcd's members among
// themselves. The rules are in the network namespace of the node, and vanish with it.

// chain is the iptables chain that holds all rules of a node.
const chain = "SKEWPROOF"

// interposition is what leads one node's connections through the fabric.
type interposition struct {
	own   netip.Addr                        // the node's address
	doors map[netip.AddrPort]netip.AddrPort // where others are dialled → where the fabric listens for that
	etcd  netip.AddrPort                    // where the fabric listens for etcd
}

// rules are the arguments of iptables, in order; each line is one call. Loopback addresses may not leave a node unless its interface is told so,
// and need the node's own address instead.
func (i interposition) rules() []string {
	rules := []string{"-N " + chain, "-A OUTPUT -p tcp -j " + chain}
	for _, dialled := range slices.SortedFunc(maps.Keys(i.doors), netip.AddrPort.Compare) {
		rules = append(rules, fmt.Sprintf("-A %s -p tcp -d %s --dport %d -j DNAT --to-destination %s", chain, dialled.Addr(), dialled.Port(), i.doors[dialled]))
	}
	return append(rules,
		fmt.Sprintf("-A %s -p tcp -d 127.0.0.1 --dport %d -j DNAT --to-destination %s", chain, etcdPort, i.etcd),
		fmt.Sprintf("-A POSTROUTING -p tcp -s 127.0.0.0/8 -d %s --dport %d -j SNAT --to-source %s", i.etcd.Addr(), i.etcd.Port(), i.own),
	)
}

func (i interposition) apply(ctx context.Context, node string) error {
	lines := "echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet\n"
	for _, rule := range i.rules() {
		lines += "iptables -w -t nat " + rule + "\n"
	}
	if _, err := script(ctx, node, lines); err != nil {
		return fmt.Errorf("lead the connections of node %s through the fault fabric: %w", node, err)
	}
	// A firewall of this machine would show as servers that do not find each other, minutes later.
	if _, err := script(ctx, node, `timeout 5 bash -c "exec 3<>/dev/tcp/$1/$2"`, i.etcd.Addr().String(), fmt.Sprint(i.etcd.Port())); err != nil {
		return fmt.Errorf("node %s cannot reach the fault fabric at %s, which is this machine's address on the cluster's network: "+
			"does a firewall (ufw, firewalld) refuse what comes from Docker's bridges?", node, i.etcd)
	}
	return nil
}

// interpose starts the fabric and leads every node's connections through it. It is called when the nodes run and nothing in them does yet, so that there
// is never a connection around the fabric.
func (c *Cluster) interpose(ctx context.Context) error {
	all, err := addresses(ctx, c.name)
	if err != nil {
		return err
	}
	links := fabric.Config{Now: c.config.Recorder.Now, Log: c.linksLog, Elsewhere: map[string]netip.AddrPort{}}
	etcd := fabric.Destination{Name: fault.Etcd, Advertised: netip.AddrPortFrom(c.gateway, 0)}
	for _, p := range c.places {
		s := c.servers[p.Name]
		s.address = all[p.Node]
		links.Sources = append(links.Sources, fabric.Source{Name: p.Name, Addr: s.address})
		links.Destinations = append(links.Destinations, fabric.Destination{
			Name: p.Name, Advertised: netip.AddrPortFrom(c.gateway, 0), Real: netip.AddrPortFrom(s.address, securePort),
		})
		etcd.Real = netip.AddrPortFrom(s.address, etcdPort)
		links.Elsewhere[fabric.LinkName(p.Name, fault.Etcd)] = etcd.Real // each has its own
	}
	links.Destinations = append(links.Destinations, etcd)
	if c.fabric, err = fabric.New(links); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range c.places {
		group.Go(func() error { return c.interposition(p).apply(ctx, p.Node) })
	}
	return group.Wait()
}

func (c *Cluster) interposition(p Place) interposition {
	i := interposition{own: c.servers[p.Name].address, doors: map[netip.AddrPort]netip.AddrPort{}, etcd: c.fabric.Advertised(fault.Etcd)}
	for _, other := range c.places {
		if other.Name != p.Name {
			i.doors[netip.AddrPortFrom(c.servers[other.Name].address, securePort)] = c.fabric.Advertised(other.Name)
		}
	}
	return i
}

// checkInterposed demands that no node has a connection to another one's front door around the fabric: at the other end it would show that node's own
// address rather than ours.
func (c *Cluster) checkInterposed(ctx context.Context) error {
	for _, p := range c.places {
		out, err := inNode(ctx, p.Node, "ss", "--tcp", "--numeric", "--no-header", "state", "established", "sport", "=", fmt.Sprint(securePort))
		if err != nil {
			return err
		}
		for _, other := range c.places {
			if other.Name != p.Name && connectedFrom(string(out), c.servers[other.Name].address) {
				return fmt.Errorf("%s has a connection to %s around the fault fabric: faults would not bite", other.Name, p.Name)
			}
		}
	}
	return nil
}

// connectedFrom reports whether an address is among the far ends that ss(8) lists. A listener for both families shows it as one of IPv6.
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
