package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/component-base/tracing"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// peerServerName is the name that serving certificates of peers must have (KEP-4020;
// kube-apiserver, BuildPeerProxy).
const peerServerName = "kubernetes.default.svc"

// upstreamSilence is how long a connection of a kube-apiserver may bring no byte: it sends a ping
// after two thirds of this time.
const upstreamSilence = 45 * time.Second

// idle is how long a connection without requests is kept. A kube-apiserver keeps it for 90 s.
const idle = 30 * time.Second

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// transport sends requests to peers over verified TLS, with the front-proxy certificate. It reads
// the certificate and the authorities for each new connection. It ignores HTTP proxies from the
// environment.
type transport struct {
	ca            *dynamiccertificates.DynamicFileCAContent
	certificate   *dynamiccertificates.DynamicCertKeyPairContent
	http2, http1  *http.Transport // HTTP/2 has no upgrades
	dial          dial
	handshakeTime time.Duration
	silence       time.Duration // see proxy.RoutingPolicy
}

func newTransport(o Options, egress *egressselector.EgressSelector) (t *transport, err error) {
	t = &transport{
		handshakeTime: cmp.Or(o.Policy.Routing.DialTimeout, 10*time.Second),
		silence:       cmp.Or(o.Policy.Routing.Silence, upstreamSilence),
	}
	if t.ca, err = dynamiccertificates.NewDynamicCAContentFromFile("peer-ca", o.PeerCAFile); err != nil {
		return nil, fmt.Errorf("read --peer-ca-file: %w", err)
	}
	t.certificate, err = dynamiccertificates.NewDynamicServingContentFromFiles("peer-proxy-client", o.ClientCertFile, o.ClientKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read --proxy-client-cert-file and --proxy-client-key-file: %w", err)
	}
	if t.dial, err = dialer(egress); err != nil {
		return nil, err
	}
	if t.dial == nil {
		t.dial = (&net.Dialer{
			Timeout:         cmp.Or(o.Policy.Routing.DialTimeout, 30*time.Second),
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: t.silence / 2, Interval: t.silence / 4, Count: 2},
			Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { giveUpUnacknowledged(fd, t.silence) })
			},
		}).DialContext
	}
	t.http2, t.http1 = t.of(true), t.of(false)
	return t, nil
}

// run reads the files again when they change, until the context ends.
func (t *transport) run(ctx context.Context) {
	go t.ca.Run(ctx, 1)
	t.certificate.Run(ctx, 1)
}

func (t *transport) of(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(http2)
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return t.connect(ctx, network, address, http2)
		},
		DisableCompression:  true, // the client's own Accept-Encoding decides
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     idle,
		Protocols:           protocols,
		// A ping only asks for bytes, see alive. Its own answer may wait behind an upload.
		HTTP2: &http.HTTP2Config{SendPingTimeout: t.silence / 2, PingTimeout: time.Minute},
	}
}

// alive is a connection that brings a byte within a time, or fails. http.Transport would end a
// connection whose ping is not answered, even if other bytes come.
type alive struct {
	net.Conn
	silence time.Duration // 0: any
}

// Read waits twice for half of the time. If this process was stopped for so long, bytes that have
// come meanwhile still count.
func (a *alive) Read(p []byte) (n int, err error) {
	if a.silence == 0 {
		return a.Conn.Read(p)
	}
	for range 2 {
		if err := a.SetReadDeadline(time.Now().Add(a.silence / 2)); err != nil {
			return a.Conn.Read(p) // the connections of some egress selectors have no deadlines
		}
		if n, err = a.Conn.Read(p); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return n, err
}

// connect dials an address and verifies the server there.
func (t *transport) connect(ctx context.Context, network, address string, http2 bool) (net.Conn, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{"http/1.1"}
	if http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	raw, err := t.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.handshakeTime)
	defer cancel()
	watched := &alive{Conn: raw}
	conn := tls.Client(watched, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		if errors.Is(err, context.DeadlineExceeded) { // there is no connection, as if dialling took too long
			err = &net.OpError{Op: "dial", Net: network, Addr: raw.RemoteAddr(), Err: err}
		}
		return nil, err
	}
	if conn.ConnectionState().NegotiatedProtocol == "h2" { // which has pings
		watched.silence = t.silence
	}
	return conn, nil
}

// config returns the TLS configuration with the present certificate and authorities. The
// certificate is always sent, even if the server's hint does not name its issuer: otherwise the
// server would take the request for anonymous instead of refusing it.
func (t *transport) config() (*tls.Config, error) {
	verify, ok := t.ca.VerifyOptions()
	if !ok {
		return nil, errors.New("--peer-ca-file has no authority")
	}
	certificate, err := tls.X509KeyPair(t.certificate.CurrentCertKeyContent())
	if err != nil {
		return nil, fmt.Errorf("read the front-proxy certificate: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: verify.Roots, ServerName: peerServerName,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
	}, nil
}

// identify returns the verified serving certificate at an address.
func (t *transport) identify(ctx context.Context, address string) (*x509.Certificate, error) {
	conn, err := t.connect(ctx, "tcp", address, true)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// RoundTrip sends a request over HTTP/1.1 if it must not share its connection: a kube-apiserver may
// close an HTTP/2 connection after a request of an anonymous user, or with many header values, and
// a body that cannot be read again would be lost with it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	u, known := apirequest.UserFrom(r.Context())
	once := r.Body != nil && r.Body != http.NoBody && r.GetBody == nil
	if r.Header.Get("Upgrade") != "" || once || known && wire.Anonymous(u) || wire.HeaderValues(r.Header) > wire.ManyHeaderValues {
		return t.http1.RoundTrip(r)
	}
	return t.http2.RoundTrip(r)
}

// CloseIdleConnections closes connections that carry no request.
func (t *transport) CloseIdleConnections() {
	t.http2.CloseIdleConnections()
	t.http1.CloseIdleConnections()
}

// delegating sends clients' requests. The seat of a watch in priority and fairness becomes free,
// because the peer counts it.
type delegating struct{ *transport }

func (d delegating) RoundTrip(r *http.Request) (*http.Response, error) {
	flowcontrol.RequestDelegated(r.Context())
	return d.transport.RoundTrip(r)
}

// traced makes a span of every request to a peer, as kube-aggregator does for requests that it
// passes on. Like there, an upgrade has none: a connection with a span could not be closed in one
// direction alone.
type traced struct{ plain, spans http.RoundTripper }

func newTraced(to http.RoundTripper, provider tracing.TracerProvider) traced {
	return traced{plain: to, spans: tracing.WrapperFor(provider)(to)}
}

func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.plain.RoundTrip(r)
	}
	return t.spans.RoundTrip(r)
}
