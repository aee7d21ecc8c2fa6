package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Setup is how the configuration of a server differs from the subject's, which is the zero value.
// It holds for one start: a later start without a setup gives the right configuration.
type Setup struct {
	// Proxy switches the Mixed Version Proxy of this server on or off.
	Proxy Switch `json:"proxy,omitempty"`
	// PeerCA is which authority the server trusts when it dials its peers (--peer-ca-file).
	PeerCA Trust `json:"peerCA,omitempty"`
	// Serving is the certificate that the server shows to clients and peers (--tls-cert-file).
	Serving Certificate `json:"serving,omitempty"`
	// FrontProxy is the certificate by which peers trust its users (--proxy-client-cert-file).
	FrontProxy Certificate `json:"frontProxy,omitempty"`
	// Advertise is where peers find it (--peer-advertise-ip, --peer-advertise-port).
	Advertise Advertise `json:"advertise,omitempty"`
	// Flags says whose flags it is started with.
	Flags Flags `json:"flags,omitempty"`
	// HostnameOf names a server with the same host name: upstream gives both the same identity.
	HostnameOf string `json:"hostnameOf,omitempty"`
	// Direct lets the sidecar of this server find the servers that have none, and ask them directly.
	// The proxy of a kube-apiserver cannot.
	Direct bool `json:"direct,omitempty"`
	// EmulatedVersion is the minor version, such as "1.36", of --emulated-version; empty: its own.
	EmulatedVersion string `json:"emulatedVersion,omitempty"`
}

// Switch overrides what the subject says. The zero value leaves it alone.
type Switch string

// The positions of a [Switch].
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Trust is which authority a server trusts. The zero value is the right one.
type Trust string

// What can be wrong with an authority.
const (
	TrustStranger Trust = "stranger" // one that has signed nobody's certificate
	TrustMissing  Trust = "missing"  // no file is given: upstream then goes without the proxy, and says so nowhere
)

// Certificate is what a server proves with who it is. The zero value is the right one.
type Certificate string

// What can be wrong with a certificate, or not.
const (
	CertificateExpired  Certificate = "expired"
	CertificateStranger Certificate = "stranger" // signed by an authority that nobody trusts
	// CertificateOther is of the right authority, for a name that no other server allows.
	CertificateOther   Certificate = "other"
	CertificateRotated Certificate = "rotated" // a new one that is right as well
)

// Advertise is what a server tells its peers about its address. The zero value is right.
type Advertise string

// What a server may advertise.
const (
	AdvertiseNothing Advertise = "nothing" // neither flag: upstream falls back to --advertise-address and the secure port
	// AdvertiseHost is neither flag, nor --advertise-address: upstream falls back to the address of
	// the host's interface, which peers cannot reach.
	AdvertiseHost Advertise = "the host's own address"
	// These are half of what is needed. Nothing listens there, so it can be seen whether they are
	// used.
	AdvertiseIP    Advertise = "an address and no port"
	AdvertisePort  Advertise = "a port and no address"
	AdvertiseWrong Advertise = "an address at which nobody listens" // it is of the run's own network
)

// Setups reports whether the plan has a setup: not every backend can.
func (plan *Plan) Setups() bool {
	return slices.ContainsFunc(plan.Servers, func(s Server) bool { return s.Setup != nil }) ||
		slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Setup != nil })
}

// Flags are the flags of a server's proxy. The zero value is as its documentation asks.
type Flags string

// FlagsKubeadm are only those that kubeadm sets: none about peers. A sidecar has its own flags.
// Source: getAPIServerCommand in
// k8s.io/kubernetes/cmd/kubeadm/app/phases/controlplane/manifests.go.
const FlagsKubeadm Flags = "kubeadm"

// String puts what is out of the ordinary in words; "" if nothing is.
func (s *Setup) String() string {
	if s == nil {
		return ""
	}
	var words []string
	if s.Direct {
		words = append(words, "its sidecar looking for servers without one")
	}
	for _, part := range []struct{ value, words string }{
		{string(s.Proxy), "its proxy switched " + string(s.Proxy)},
		{string(s.PeerCA), "its peer authority: " + string(s.PeerCA)},
		{string(s.Serving), "its serving certificate: " + string(s.Serving)},
		{string(s.FrontProxy), "its front-proxy certificate: " + string(s.FrontProxy)},
		{string(s.Advertise), "advertising " + string(s.Advertise)},
		{string(s.Flags), "with the flags of " + string(s.Flags)},
		{s.HostnameOf, "with the host name of " + s.HostnameOf},
		{s.EmulatedVersion, "emulating " + s.EmulatedVersion},
	} {
		if part.value != "" {
			words = append(words, part.words)
		}
	}
	return strings.Join(words, ", ")
}

func (s *Setup) validate() error {
	if s == nil {
		return nil
	}
	for _, known := range []error{
		oneOf("proxy", s.Proxy, On, Off),
		oneOf("peer authority", s.PeerCA, TrustStranger, TrustMissing),
		oneOf("serving certificate", s.Serving, CertificateExpired, CertificateStranger, CertificateOther, CertificateRotated),
		oneOf("front-proxy certificate", s.FrontProxy, CertificateExpired, CertificateStranger, CertificateOther, CertificateRotated),
		oneOf("advertising", s.Advertise, AdvertiseNothing, AdvertiseHost, AdvertiseIP, AdvertisePort, AdvertiseWrong),
		oneOf("flags", s.Flags, FlagsKubeadm),
	} {
		if known != nil {
			return known
		}
	}
	if *s == (Setup{}) {
		return errors.New("setup: it is empty; leave it out")
	}
	return nil
}

func oneOf[T ~string](what string, value T, known ...T) error {
	if value == "" {
		return nil
	}
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return fmt.Errorf("setup: %s %q: want one of %q", what, value, known)
}
