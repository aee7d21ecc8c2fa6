package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
)

// Setup is the difference between the configuration of a server and the subject's configuration,
// which is the zero value. It applies to one start: a later start without a setup uses the right
// configuration.
type Setup struct {
	// Proxy switches the Mixed Version Proxy of this server on or off.
	Proxy Switch `json:"proxy,omitempty"`
	// PeerCA says which authority the server trusts when it dials its peers (--peer-ca-file).
	PeerCA Trust `json:"peerCA,omitempty"`
	// Serving is the certificate that the server presents to clients and peers (--tls-cert-file).
	Serving Certificate `json:"serving,omitempty"`
	// FrontProxy is the certificate by which peers trust the users that the server names
	// (--proxy-client-cert-file).
	FrontProxy Certificate `json:"frontProxy,omitempty"`
	// Advertise says which address peers find (--peer-advertise-ip, --peer-advertise-port).
	Advertise Advertise `json:"advertise,omitempty"`
	// Flags says which flags the server is started with.
	Flags Flags `json:"flags,omitempty"`
	// HostnameOf names a server with the same host name. Upstream gives both the same identity.
	HostnameOf string `json:"hostnameOf,omitempty"`
	// Plain runs the kube-apiserver of the release, with its own proxy, in place of the reference.
	Plain bool `json:"plain,omitempty"`
	// EmulatedVersion is the minor version, such as "1.36", of --emulated-version; empty: its own.
	EmulatedVersion string `json:"emulatedVersion,omitempty"`
	// FeatureGates are gates in addition to those that the run sets, such as "A=false,B=false".
	FeatureGates string `json:"featureGates,omitempty"`
	// Goaway is on for a server that asks HTTP/2 clients after random requests to make a new
	// connection (--goaway-chance, with [GoawayChance]).
	Goaway Switch `json:"goaway,omitempty"`
	// ShutdownDelay is how long a server that is stopped continues to serve, while its /readyz fails
	// (--shutdown-delay-duration). A released kube-apiserver removes its leases before that, the
	// reference after it. Zero: not at all.
	ShutdownDelay time.Duration `json:"shutdownDelay,omitempty"`
	// WatchTermination is how long a server that no longer serves takes to end its watches
	// (--shutdown-watch-termination-grace-period). Zero: it ends no watch. Then its process lives
	// until the last watch has ended, for at most [DrainsWithin].
	WatchTermination time.Duration `json:"watchTermination,omitempty"`
}

// GoawayChance is the value of --goaway-chance for [Setup.Goaway]: the largest that a
// kube-apiserver accepts (0.02, k8s.io/apiserver/pkg/server/options/server_run_options.go).
const GoawayChance = "0.02"

// DrainsWithin is how long a process that no longer serves waits for requests in flight, and for
// watches that it does not end itself. It is the default of --request-timeout, which bounds
// http.Server.Shutdown (preparedGenericAPIServer.RunWithContext in k8s.io/apiserver,
// pkg/server/genericapiserver.go).
const DrainsWithin = time.Minute

// IsPlain reports whether the setup, which may be nil, is [Setup.Plain].
func (s *Setup) IsPlain() bool { return s != nil && s.Plain }

// Drain is by how much the setup, which may be nil, prolongs the graceful end of a server.
func (s *Setup) Drain() time.Duration {
	if s == nil {
		return 0
	}
	return s.ShutdownDelay + s.WatchTermination
}

// LongDrain is a shutdown delay that is longer than the staleness bound. So peers have noticed that
// the server is stopping while it still serves.
const LongDrain = 7 * time.Second

// longestDrain bounds delays. A step that stops a server waits for them.
const longestDrain = 15 * time.Second

// Switch overrides the subject's configuration. The zero value does not.
type Switch string

// The positions of a [Switch].
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Trust is the authority that a server trusts. The zero value is the right authority.
type Trust string

// The wrong authorities.
const (
	TrustStranger Trust = "stranger" // an authority that has signed no server's certificate
	TrustMissing  Trust = "missing"  // no file is given: upstream then builds no proxy, and does not log this
)

// Certificate is the certificate by which a server proves its identity. The zero value is the right
// one.
type Certificate string

// The certificates. CertificateRotated is valid; the others are wrong.
const (
	CertificateExpired  Certificate = "expired"
	CertificateStranger Certificate = "stranger" // signed by an authority that no server trusts
	// CertificateOther is signed by the right authority, for a name that no other server allows.
	CertificateOther   Certificate = "other"
	CertificateRotated Certificate = "rotated" // a new certificate that is valid too
)

func (c Certificate) wrong() bool { return c != "" && c != CertificateRotated }

// Advertise is the address that a server tells its peers. The zero value is the right address.
type Advertise string

// The addresses that a server may advertise.
const (
	AdvertiseNothing Advertise = "nothing" // neither flag: upstream falls back to --advertise-address and the secure port
	// AdvertiseHost is neither flag, and no --advertise-address: upstream falls back to the address
	// of the host's interface, which peers cannot reach.
	AdvertiseHost Advertise = "the host's own address"
	// AdvertiseIP and AdvertisePort are half of an address. No process listens there, so the run
	// can see whether a server uses them.
	AdvertiseIP    Advertise = "an address and no port"
	AdvertisePort  Advertise = "a port and no address"
	AdvertiseWrong Advertise = "an address at which nobody listens" // it belongs to the run's own network
)

// Setups reports whether the plan has a setup, which not every backend supports.
func (plan *Plan) Setups() bool { return plan.AnySetup(func(s *Setup) bool { return s != nil }) }

// AnySetup reports whether is holds for the setup, which may be nil, of any server or step.
func (plan *Plan) AnySetup(is func(*Setup) bool) bool {
	return slices.ContainsFunc(plan.Servers, func(s Server) bool { return is(s.Setup) }) ||
		slices.ContainsFunc(plan.Steps, func(s Step) bool { return is(s.Setup) })
}

// Flags are the flags of a server's proxy. The zero value is the flags that its documentation
// requires.
type Flags string

// FlagsKubeadm are only the flags that kubeadm sets, which have none about peers. The reference has
// those that it needs besides: they belong to its installation. Source: getAPIServerCommand in
// k8s.io/kubernetes/cmd/kubeadm/app/phases/controlplane/manifests.go.
const FlagsKubeadm Flags = "kubeadm"

// String describes the unusual settings in words; "" if there are none.
func (s *Setup) String() string {
	if s == nil {
		return ""
	}
	var words []string
	if s.Plain {
		words = append(words, "its proxy that of its release")
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
		{s.FeatureGates, "with the feature gates " + s.FeatureGates},
		{string(s.Goaway), "its request to connect anew switched " + string(s.Goaway)},
		{inWords(s.ShutdownDelay), "serving for " + s.ShutdownDelay.String() + " after it was told to stop"},
		{inWords(s.WatchTermination), "waiting up to " + s.WatchTermination.String() + " for watches when it is told to stop"},
	} {
		if part.value != "" {
			words = append(words, part.words)
		}
	}
	return strings.Join(words, ", ")
}

// inWords is the text of a duration; "" for none.
func inWords(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
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
		oneOf("request to connect anew", s.Goaway, On),
		drain("shutdown delay", s.ShutdownDelay),
		drain("wait for watches", s.WatchTermination),
	} {
		if known != nil {
			return known
		}
	}
	if s.FeatureGates != "" {
		if err := cliflag.NewMapStringBool(new(map[string]bool)).Set(s.FeatureGates); err != nil {
			return fmt.Errorf("setup: feature gates %q: %w", s.FeatureGates, err)
		}
	}
	if *s == (Setup{}) {
		return errors.New("setup: it is empty; leave it out")
	}
	return nil
}

func drain(what string, d time.Duration) error {
	if d < 0 || d > longestDrain || d%time.Second != 0 {
		return fmt.Errorf("setup: %s %s: want whole seconds up to %s", what, d, longestDrain)
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
