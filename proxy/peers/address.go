package peers

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseAddress reads "ip:port" or "hostname:port" in canonical form. It refuses everything else: a
// user, a path, a zone, a port name, an unspecified address (0.0.0.0), a multicast address.
func ParseAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("address %q: want host:port", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
		return "", fmt.Errorf("address %q: the port is not a number from 1 to 65535", s)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		if ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return "", fmt.Errorf("address %q: not the address of one host", s)
		}
		return net.JoinHostPort(ip.String(), port), nil
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 || numeric(host[strings.LastIndexByte(host, '.')+1:]) {
		return "", fmt.Errorf("address %q: neither an IP address nor a host name", s)
	}
	return net.JoinHostPort(host, port), nil
}

// numeric reports whether a label has only digits. The last label of a host name must not be
// numeric, because some resolvers take such a name for an IP address (URL Standard, "ends in a
// number").
func numeric(label string) bool { return strings.Trim(label, "0123456789") == "" }
