package sidecar

import (
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	cliflag "k8s.io/component-base/cli/flag"
)

// Options configure a sidecar. Start from [NewOptions], because the zero value lacks the defaults; [Run] says what is missing or wrong. A
// field with a flag is described by the help text of that flag, see [Options.Flags]; a flag that kube-apiserver has too has the same name.
type Options struct {
	// Serving.
	BindAddress           net.IP
	SecurePort            int
	TLSCertFile           string
	TLSPrivateKeyFile     string
	AdminBindAddress      string
	ShutdownDelayDuration time.Duration
	ShutdownTimeout       time.Duration

	// The local kube-apiserver.
	Upstream           string
	UpstreamCAFile     string
	UpstreamServerName string
	Kubeconfig         string
	ServerID           string

	// Peers.
	Policy            string
	PeerCAFile        string
	PeerAdvertiseIP   string
	PeerAdvertisePort string
	AdvertiseAddress  net.IP
	Peers             []string
	ProxyClientCert   string
	ProxyClientKey    string

	// Authentication of callers.
	ClientCAFile             string
	AnonymousAuth            bool
	AnonymousAuthPaths       []string // none: all
	TokenCacheTTL            time.Duration
	RequestHeaderCAFile      string
	RequestHeaderNames       []string // allowed common names
	RequestHeaderUsername    []string
	RequestHeaderUID         []string
	RequestHeaderGroup       []string
	RequestHeaderExtraPrefix []string

	// Observation.
	AccessLog              string
	TracingEndpoint        string
	TracingRatePerMillion  int
	CertificateRefreshTime time.Duration

	// The fields below have no flag.

	// Listener, if set, replaces BindAddress and SecurePort; AdminListener replaces AdminBindAddress. Run closes them.
	Listener, AdminListener net.Listener
	// Logger gets the log. Nil: nothing is logged.
	Logger *slog.Logger
	// Registry gets the metrics and is served at /metrics of the admin listener. Nil: a new one.
	Registry *prometheus.Registry
	// TracerProvider makes the spans; Run does not shut it down. Nil: one that sends to TracingEndpoint, or none if that is empty.
	TracerProvider trace.TracerProvider
	// Started, if not nil, is called once when both listeners accept, with their addresses. admin is nil without an admin listener.
	Started func(front, admin net.Addr)
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		BindAddress:              net.IPv4zero,
		SecurePort:               6443,
		AdminBindAddress:         "127.0.0.1:6440",
		ShutdownTimeout:          10 * time.Second,
		Upstream:                 "https://127.0.0.1:6444",
		Policy:                   "reference",
		AnonymousAuth:            true,
		TokenCacheTTL:            10 * time.Second,
		RequestHeaderUsername:    []string{"X-Remote-User"},
		RequestHeaderUID:         []string{"X-Remote-Uid"},
		RequestHeaderGroup:       []string{"X-Remote-Group"},
		RequestHeaderExtraPrefix: []string{"X-Remote-Extra-"},
		CertificateRefreshTime:   5 * time.Second,
	}
}

// Flags returns the flags that set these options, in groups.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	o.servingFlags(sets.FlagSet("serving"))
	o.upstreamFlags(sets.FlagSet("local kube-apiserver"))
	o.peerFlags(sets.FlagSet("peers"))
	o.authenticationFlags(sets.FlagSet("authentication"))
	o.observationFlags(sets.FlagSet("observation"))
	return sets
}

func (o *Options) servingFlags(f *pflag.FlagSet) {
	f.IPVar(&o.BindAddress, "bind-address", o.BindAddress, "The IP address to listen on for --secure-port; 0.0.0.0 or :: for all.")
	f.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "The port to serve HTTPS on.")
	f.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile,
		"The serving certificate, followed by its intermediates. Peers demand the name kubernetes.default.svc in it. Read again when it changes.")
	f.StringVar(&o.TLSPrivateKeyFile, "tls-private-key-file", o.TLSPrivateKeyFile, "The private key of --tls-cert-file.")
	f.StringVar(&o.AdminBindAddress, "admin-bind-address", o.AdminBindAddress,
		"The loopback address and port for plain HTTP /metrics, /debug/peers, /readyz and /livez of the proxy itself; empty for none.")
	f.DurationVar(&o.ShutdownDelayDuration, "shutdown-delay-duration", o.ShutdownDelayDuration,
		"How long to keep serving after the signal to stop, with /readyz failing, so that clients use other servers. Peers still send requests: the endpoint lease is deleted at the end.")
	f.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", o.ShutdownTimeout,
		"How long requests may take to end after that. Watches and upgraded connections are cut as soon as all other requests have ended.")
}

func (o *Options) upstreamFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Upstream, "upstream", o.Upstream, "The https URL of the kube-apiserver that this proxy stands in front of.")
	f.StringVar(&o.UpstreamCAFile, "upstream-ca-file", o.UpstreamCAFile,
		"The certificate authorities that sign the serving certificate of --upstream; empty: those of the system. Read again when they change.")
	f.StringVar(&o.UpstreamServerName, "upstream-server-name", o.UpstreamServerName,
		"The name to demand in the serving certificate of --upstream; empty: the host of --upstream.")
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"The kubeconfig by which to review tokens and to read and write leases; it should name the kube-apiserver of --upstream. "+
			"Empty: --upstream, as system:apiserver in the group system:masters, asserted with --proxy-client-cert-file.")
	f.StringVar(&o.ServerID, "server-id", o.ServerID,
		"The identity of the kube-apiserver, the name of its identity lease; empty: what a kube-apiserver on a host of this name takes.")
}

func (o *Options) peerFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Policy, "policy", o.Policy, "How to behave: reference, or like a release with its faults: alpha-1.28, upstream-1.34, upstream-1.35, upstream-1.36, upstream-1.37.")
	f.StringVar(&o.PeerCAFile, "peer-ca-file", o.PeerCAFile,
		"The certificate authorities that sign the serving certificates of peers. Read again when they change.")
	f.StringVar(&o.ProxyClientCert, "proxy-client-cert-file", o.ProxyClientCert,
		"The client certificate that proves to the local kube-apiserver and to peers that the identity headers can be trusted. "+
			"It has to satisfy --requestheader-client-ca-file and --requestheader-allowed-names. Read again when it changes.")
	f.StringVar(&o.ProxyClientKey, "proxy-client-key-file", o.ProxyClientKey, "The private key of --proxy-client-cert-file.")
	f.StringVar(&o.PeerAdvertiseIP, "peer-advertise-ip", o.PeerAdvertiseIP,
		"The IP address by which peers reach this proxy, together with --peer-advertise-port. If neither is set: --advertise-address, else --bind-address, "+
			"else the host's default interface; with --secure-port.")
	f.StringVar(&o.PeerAdvertisePort, "peer-advertise-port", o.PeerAdvertisePort, "The port by which peers reach this proxy, together with --peer-advertise-ip.")
	f.IPVar(&o.AdvertiseAddress, "advertise-address", o.AdvertiseAddress, "The IP address on which to advertise this proxy. If not set, --bind-address is used; "+
		"if that is unspecified or loopback, the host's default interface.")
	f.StringArrayVar(&o.Peers, "peer", o.Peers,
		"A peer, as ID=HOST:PORT; may be repeated. With it, the peers are those given and no others: leases are neither read nor written.")
}

func (o *Options) authenticationFlags(f *pflag.FlagSet) {
	f.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"The certificate authorities of client certificates: a caller with one is the user of its common name, in the groups of its organizations. Read again when they change.")
	f.BoolVar(&o.AnonymousAuth, "anonymous-auth", o.AnonymousAuth,
		"Treat callers without credentials as system:anonymous rather than answer 401. Set it as on the local kube-apiserver, which cannot tell the difference behind this proxy.")
	f.StringSliceVar(&o.AnonymousAuthPaths, "anonymous-auth-paths", o.AnonymousAuthPaths,
		"The only paths at which to do so; none: all. Set it if the AuthenticationConfiguration of the local kube-apiserver has anonymous.conditions.")
	f.DurationVar(&o.TokenCacheTTL, "authentication-token-webhook-cache-ttl", o.TokenCacheTTL,
		"How long to cache the result of a TokenReview.")
	f.StringVar(&o.RequestHeaderCAFile, "requestheader-client-ca-file", o.RequestHeaderCAFile,
		"The certificate authorities of front proxies, peers included, whose identity headers are trusted. Read again when they change.")
	f.StringSliceVar(&o.RequestHeaderNames, "requestheader-allowed-names", o.RequestHeaderNames,
		"The common names of client certificates whose identity headers are trusted; empty: every certificate that --requestheader-client-ca-file signed.")
	f.StringSliceVar(&o.RequestHeaderUsername, "requestheader-username-headers", o.RequestHeaderUsername, "The headers to read user names from.")
	f.StringSliceVar(&o.RequestHeaderUID, "requestheader-uid-headers", o.RequestHeaderUID, "The headers to read UIDs from.")
	f.StringSliceVar(&o.RequestHeaderGroup, "requestheader-group-headers", o.RequestHeaderGroup, "The headers to read groups from.")
	f.StringSliceVar(&o.RequestHeaderExtraPrefix, "requestheader-extra-headers-prefix", o.RequestHeaderExtraPrefix, "The prefixes of headers to read extra attributes from.")
}

func (o *Options) observationFlags(f *pflag.FlagSet) {
	f.StringVar(&o.AccessLog, "access-log", o.AccessLog, "A file to append a line of JSON to for every request; empty for none.")
	f.StringVar(&o.TracingEndpoint, "tracing-endpoint", o.TracingEndpoint,
		"The HOST:PORT of an OTLP collector to send spans to, by gRPC without TLS; empty: no spans are recorded, but trace context is passed on.")
	f.IntVar(&o.TracingRatePerMillion, "tracing-sampling-rate-per-million", o.TracingRatePerMillion,
		"How many of a million requests to trace, of those that their sender has not sampled.")
	f.DurationVar(&o.CertificateRefreshTime, "certificate-refresh-time", o.CertificateRefreshTime, "How often to look whether certificates, keys and authorities have changed.")
}
