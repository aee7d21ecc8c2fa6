package sidecar

import (
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	cliflag "k8s.io/component-base/cli/flag"
)

// Options configure a sidecar. Start from [NewOptions], because the zero value lacks the defaults.
// [Run] returns an error for missing or wrong options. The help text of a flag describes its field,
// see [Options.Flags]. If kube-apiserver has the same flag, it has the same name.
type Options struct {
	// Serving.
	BindAddress           net.IP
	SecurePort            int
	TLSCertFile           string
	TLSPrivateKeyFile     string
	TLSSNICertKeys        []cliflag.NamedCertKey
	TLSMinVersion         string   // such as VersionTLS12; empty: that
	TLSCipherSuites       []string // none: Go's
	HTTP2MaxStreams       int      // zero: 100
	RequestTimeout        time.Duration
	GoawayChance          float64
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
	DirectPeers       []string
	FindDirectPeers   bool
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

	// Listener, if set, replaces BindAddress and SecurePort. AdminListener, if set, replaces
	// AdminBindAddress. Run closes both.
	Listener, AdminListener net.Listener
	// Logger gets the log. Nil: nothing is logged.
	Logger *slog.Logger
	// Registry gets the metrics. /metrics of the admin listener serves it. Nil: a new one.
	Registry *prometheus.Registry
	// TracerProvider makes the spans. Run does not shut it down. Nil: a provider that sends to
	// TracingEndpoint, or none if TracingEndpoint is empty.
	TracerProvider trace.TracerProvider
	// Started, if not nil, is called once when both listeners accept connections. It gets their
	// addresses. admin is nil if there is no admin listener.
	Started func(front, admin net.Addr)
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		BindAddress:              net.IPv4zero,
		SecurePort:               6443,
		AdminBindAddress:         "127.0.0.1:6440",
		ShutdownTimeout:          10 * time.Second,
		RequestTimeout:           time.Minute,
		Upstream:                 "https://127.0.0.1:6444",
		Policy:                   "reference",
		FindDirectPeers:          true,
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
	var f *pflag.FlagSet
	text := func(p *string, name, usage string) { f.StringVar(p, name, *p, usage) }
	list := func(p *[]string, name, usage string) { f.StringSliceVar(p, name, *p, usage) }
	ip := func(p *net.IP, name, usage string) { f.IPVar(p, name, *p, usage) }
	duration := func(p *time.Duration, name, usage string) { f.DurationVar(p, name, *p, usage) }

	f = sets.FlagSet("serving")
	ip(&o.BindAddress, "bind-address", "The IP address to listen on for --secure-port; 0.0.0.0 or :: for all.")
	f.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "The port to serve HTTPS on.")
	text(&o.TLSCertFile, "tls-cert-file",
		"The serving certificate, followed by its intermediates. Peers demand the name kubernetes.default.svc in it. Read again "+
			"when it changes.")
	text(&o.TLSPrivateKeyFile, "tls-private-key-file", "The private key of --tls-cert-file.")
	f.Var(cliflag.NewNamedCertKeyArray(&o.TLSSNICertKeys), "tls-sni-cert-key",
		"Files with a certificate and its private key for clients that ask for certain names, as CERT,KEY or "+
			"CERT,KEY:NAME,NAME; may be repeated. A name may begin with a wildcard, and may be an IP address of this host. "+
			"Without names, the names in the certificate count. An exact name takes precedence over a wildcard, a given name over "+
			"a name in a certificate, and an earlier flag over a later one. Read again when they change.")
	text(&o.TLSMinVersion, "tls-min-version", "The oldest version of TLS to accept: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+
		". Empty: VersionTLS12.")
	list(&o.TLSCipherSuites, "tls-cipher-suites", "The cipher suites to accept below TLS 1.3; none: Go's defaults. Preferred: "+
		strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+". Insecure: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", ")+".")
	f.IntVar(&o.HTTP2MaxStreams, "http2-max-streams-per-connection", o.HTTP2MaxStreams,
		"How many requests a client may send at a time on one HTTP/2 connection. Zero: 100, as in kube-apiserver.")
	duration(&o.RequestTimeout, "request-timeout",
		"How long a request may take, body and answer included, unless its own parameter timeout is shorter. This limit does "+
			"not apply to watches, logs, exec, attach, port-forward and proxy. Set the same value as on the local kube-apiserver.")
	f.Float64Var(&o.GoawayChance, "goaway-chance", o.GoawayChance,
		"The fraction of requests after which the proxy tells an HTTP/2 client to use another connection, so that load "+
			"balancers spread the clients: 0 (never) to 0.02. Connections of peers stay open, because no load balancer spreads "+
			"them.")
	text(&o.AdminBindAddress, "admin-bind-address",
		"The loopback address and port for plain HTTP /metrics, /debug/peers, /readyz and /livez of the proxy itself; empty for none.")
	duration(&o.ShutdownDelayDuration, "shutdown-delay-duration",
		"How long to keep serving after the signal to stop, with /readyz failing, so that clients use other servers. Peers "+
			"still send requests, because the endpoint lease is deleted only at the end.")
	duration(&o.ShutdownTimeout, "shutdown-timeout",
		"How long requests may take to end after --shutdown-delay-duration. Watches and upgraded connections are cut as soon "+
			"as all other requests have ended.")

	f = sets.FlagSet("local kube-apiserver")
	text(&o.Upstream, "upstream", "The https URL of the kube-apiserver that this proxy stands in front of.")
	text(&o.UpstreamCAFile, "upstream-ca-file",
		"The certificate authorities that sign the serving certificate of --upstream; empty: those of the system. Read again when "+
			"they change.")
	text(&o.UpstreamServerName, "upstream-server-name",
		"The name to demand in the serving certificate of --upstream; empty: the host of --upstream.")
	text(&o.Kubeconfig, "kubeconfig",
		"The kubeconfig for access reviews, and for reading and writing leases. It should name the kube-apiserver of "+
			"--upstream. Empty: --upstream, as system:apiserver in the group system:masters, asserted with "+
			"--proxy-client-cert-file.")
	text(&o.ServerID, "server-id",
		"The identity of the kube-apiserver, which is the name of its identity lease; empty: the identity that a "+
			"kube-apiserver on a host of this name has.")

	f = sets.FlagSet("peers")
	text(&o.Policy, "policy",
		"The behaviour: reference, or that of a release with its defects: alpha-1.28, upstream-1.34, upstream-1.35, "+
			"upstream-1.36, upstream-1.37.")
	text(&o.PeerCAFile, "peer-ca-file",
		"The certificate authorities that sign the serving certificates of peers. Read again when they change.")
	text(&o.ProxyClientCert, "proxy-client-cert-file",
		"The client certificate that proves to the local kube-apiserver and to peers that the identity headers can be trusted. It "+
			"has to satisfy --requestheader-client-ca-file and --requestheader-allowed-names. Read again when it changes.")
	text(&o.ProxyClientKey, "proxy-client-key-file", "The private key of --proxy-client-cert-file.")
	text(&o.PeerAdvertiseIP, "peer-advertise-ip",
		"The IP address at which peers reach this proxy, together with --peer-advertise-port. If neither is set: "+
			"--advertise-address, else --bind-address, else the address of the host's default interface; with --secure-port.")
	text(&o.PeerAdvertisePort, "peer-advertise-port", "The port at which peers reach this proxy, together with --peer-advertise-ip.")
	ip(&o.AdvertiseAddress, "advertise-address",
		"The IP address to advertise for this proxy. If it is not set, --bind-address is used; if that is unspecified or "+
			"loopback, the address of the host's default interface.")
	f.StringArrayVar(&o.Peers, "peer", o.Peers,
		"A peer, as ID=HOST:PORT; may be repeated. With this flag, only the given peers are used, and leases are neither read "+
			"nor written.")

	f.StringArrayVar(&o.DirectPeers, "direct-peer", o.DirectPeers,
		"Where a kube-apiserver without a proxy listens, as ID=HOST:PORT; may be repeated. The ID is the name of its identity "+
			"lease. This proxy uses the address while no proxy of that kube-apiserver publishes one. The flag is for the time in "+
			"which proxies are added or removed node by node, if --find-direct-peers does not find the server. The local "+
			"kube-apiserver may be among the given ones and is ignored, so that all proxies can have the same flags.")

	f.BoolVar(&o.FindDirectPeers, "find-direct-peers", o.FindDirectPeers,
		"Look for kube-apiservers without a proxy. Servers whose own Mixed Version Proxy is on write their address into the "+
			"identity lease. For other servers, the addresses of the Service kubernetes are tried. There, a server is recognised "+
			"by a certificate that is valid for the host name in the identity lease of that server alone. --direct-peer takes "+
			"precedence.")

	f = sets.FlagSet("authentication")
	text(&o.ClientCAFile, "client-ca-file",
		"The certificate authorities of client certificates. A caller with such a certificate is the user of its common name, "+
			"in the groups of its organizations. Read again when they change.")
	f.BoolVar(&o.AnonymousAuth, "anonymous-auth", o.AnonymousAuth,
		"Treat callers without credentials as system:anonymous rather than answer 401. Set the same value as on the local "+
			"kube-apiserver. If that server answers 401, this proxy does so too.")
	list(&o.AnonymousAuthPaths, "anonymous-auth-paths",
		"The only paths at which --anonymous-auth applies; none: all paths. Set them if the AuthenticationConfiguration of "+
			"the local kube-apiserver has anonymous.conditions.")
	duration(&o.TokenCacheTTL, "authentication-token-webhook-cache-ttl", "How long to cache the user of a bearer token.")
	text(&o.RequestHeaderCAFile, "requestheader-client-ca-file",
		"The certificate authorities of front proxies, peers included, whose identity headers are trusted. Read again when they change.")
	list(&o.RequestHeaderNames, "requestheader-allowed-names",
		"The common names of client certificates whose identity headers are trusted; empty: every certificate that "+
			"--requestheader-client-ca-file signed.")
	list(&o.RequestHeaderUsername, "requestheader-username-headers", "The headers to read user names from.")
	list(&o.RequestHeaderUID, "requestheader-uid-headers", "The headers to read UIDs from.")
	list(&o.RequestHeaderGroup, "requestheader-group-headers", "The headers to read groups from.")
	list(&o.RequestHeaderExtraPrefix, "requestheader-extra-headers-prefix", "The prefixes of headers to read extra attributes from.")

	f = sets.FlagSet("observation")
	text(&o.AccessLog, "access-log", "A file to append a line of JSON to for every request; empty for none.")
	text(&o.TracingEndpoint, "tracing-endpoint",
		"The HOST:PORT of an OTLP collector to send spans to, by gRPC without TLS; empty: no spans are recorded, but trace "+
			"context is passed on.")
	f.IntVar(&o.TracingRatePerMillion, "tracing-sampling-rate-per-million", o.TracingRatePerMillion,
		"How many of a million requests to trace, among those that their sender does not trace already.")
	duration(&o.CertificateRefreshTime, "certificate-refresh-time",
		"How often to check whether certificates, keys and authorities have changed.")
	return sets
}
