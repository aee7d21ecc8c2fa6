package kind

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// runLabel marks the networks and containers of a run. Its value is the name of the cluster. kind
// marks its containers with its own labels.
const runLabel = "skewproof.cluster"

// keysLabel is a label of a run's network. Its value is the directory with the run's keys, for
// [Clean].
const keysLabel = "skewproof.keys"

// kindLabel is kind's mark of the containers of a cluster. Source:
// sigs.k8s.io/kind/pkg/cluster/internal/providers/docker/constants.go.
const kindLabel = "io.x-k8s.kind.cluster"

// networkVariable tells kind which network to use. kind uses an existing network unchanged.
// Source: Provision in sigs.k8s.io/kind/pkg/cluster/internal/providers/docker/provider.go.
const networkVariable = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

// createNetwork makes the network of a cluster and returns our address on it: that of the bridge.
func createNetwork(ctx context.Context, name, keys string) (netip.Addr, error) {
	if _, err := Docker(ctx, nil, "network", "create", "--driver=bridge", "--label", runLabel+"="+name, "--label", keysLabel+"="+keys,
		name); err != nil {
		return netip.Addr{}, fmt.Errorf("create the cluster's network: %w", err)
	}
	out, err := Docker(ctx, nil, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", name)
	if err != nil {
		return netip.Addr{}, err
	}
	gateway, err := netip.ParseAddr(out)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find our address on the cluster's network: %w", err)
	}
	own, err := ownAddresses()
	if err == nil && !own[gateway] {
		err = notHere(gateway.String())
	}
	return gateway, err
}

// ownAddresses returns the addresses of this machine, or of this network namespace.
func ownAddresses() (map[netip.Addr]bool, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	own := map[netip.Addr]bool{}
	for _, a := range interfaces {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own[prefix.Addr()] = true
		}
	}
	return own, nil
}

// notHere returns the error that the engine's networks are not on this machine.
func notHere(gateway string) error {
	return fmt.Errorf("containers cannot be reached from here: the Docker engine's own address, %s, is none of this machine's\n"+
		"  It is in a virtual machine (Docker Desktop), on another machine, or in another network namespace ('.ci/docker run COMMAND' runs a command in that of '.ci/docker start')",
		gateway)
}

// addresses returns the addresses of the containers of a cluster, by container. It omits a
// container without an address.
func addresses(ctx context.Context, cluster string) (map[string]netip.Addr, error) {
	out, err := Docker(ctx, nil, "network", "inspect", "--format", `{{range .Containers}}{{.Name}} {{.IPv4Address}}{{"\n"}}{{end}}`, cluster)
	if err != nil {
		return nil, err
	}
	all := map[string]netip.Addr{}
	for line := range strings.Lines(out) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all[name] = prefix.Addr()
		}
	}
	return all, nil
}
