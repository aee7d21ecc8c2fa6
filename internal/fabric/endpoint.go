package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
)

// Destination is an end that accepts connections: a server, or etcd.
type Destination struct {
	// Name is a DNS label: the name of a server, or [fault.Etcd], to which only servers have links.
	Name string
	// Advertised is the address at the switch, which all clients and servers dial. Port 0: any
	// port, see [Fabric.Advertised].
	Advertised netip.AddrPort
	// Real is where the destination listens.
	Real netip.AddrPort
}

// Source is a server that dials. It is recognised by its IP address.
type Source struct {
	Name string
	Addr netip.Addr
}

const separator = "-to-"

// LinkName returns the name of the toxiproxy proxy from one end to the other: "a-to-b".
func LinkName(from, to string) string { return from + separator + to }

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkName(name string) error {
	switch {
	case !dnsLabel.MatchString(name):
		return fmt.Errorf("name %q is not a DNS label (lower case letters, digits and inner dashes, at most 63)", name)
	case strings.Contains(name, separator):
		return fmt.Errorf("name %q contains %q, which separates the ends in the names of links", name, separator)
	case name == fault.Client:
		return fmt.Errorf("name %q is reserved for clients that are not servers", name)
	}
	return nil
}

func (d Destination) check() error {
	errs := []error{checkName(d.Name)}
	if !d.Advertised.Addr().IsValid() {
		errs = append(errs, errors.New("the advertised address is missing"))
	}
	if !d.Real.Addr().IsValid() || d.Real.Port() == 0 {
		errs = append(errs, fmt.Errorf("the real address %s is not one that can be dialled", d.Real))
	}
	if d.Advertised == d.Real {
		errs = append(errs, fmt.Errorf("the advertised address is the real one (%s): the switch would dial itself", d.Real))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("destination %q: %w", d.Name, err)
	}
	return nil
}

func (s Source) check() error {
	errs := []error{checkName(s.Name)}
	if s.Name == fault.Etcd {
		errs = append(errs, fmt.Errorf("%q is dialled and never dials", fault.Etcd))
	}
	if !s.Addr.IsValid() {
		errs = append(errs, errors.New("the address is missing"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("source %q: %w", s.Name, err)
	}
	return nil
}
