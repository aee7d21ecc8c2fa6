// Package interpose is a proxy between one apiserver and its peers. It makes chosen discovery
// documents of that server fail, or break off, and forwards everything else unchanged. For peers it
// is the server, and for the server it is the peer.
//
// It has the keys of both. It uses a peer's key only for clients that have proved to be peers.
package interpose

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// Config is the configuration of an interposer. All fields are required.
type Config struct {
	// Real is the address of the server. Name is the name for which the server's certificate is
	// verified.
	Real netip.AddrPort
	Name string
	// Serving returns the certificate that the server presents now. It is called for each
	// connection, concurrently.
	Serving func() (*tls.Certificate, error)
	// ServingCA has the authority that signed this certificate.
	ServingCA *x509.CertPool
	// FrontProxy returns the certificate with which peers may name users. FrontProxyCA has the
	// authority that signed it. FrontProxyName is the only common name that the server allows.
	FrontProxy     func() (*tls.Certificate, error)
	FrontProxyCA   *x509.CertPool
	FrontProxyName string
}

// Interposer is a running proxy. Its methods are safe for concurrent use.
type Interposer struct {
	config   Config
	listener net.Listener
	server   *http.Server
	upstream []*http.Transport // to the real server
	peers    sync.Map          // by raw certificate: whether it belongs to a peer

	mu     sync.Mutex
	broken map[string]*broken // by path
}

type broken struct {
	how    fault.DiscoveryFailure
	failed int // number of fetches
}

// New listens on a loopback port. At the start it breaks nothing.
func New(config Config) (*Interposer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen in front of %s: %w", config.Real, err)
	}
	s := &Interposer{config: config, listener: listener, broken: map[string]*broken{}}
	s.server = &http.Server{
		Handler:  s.handler(),
		ErrorLog: log.New(io.Discard, "", 0), // the records of faults count the broken connections
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			ClientAuth:     tls.RequestClientCert, // verified with each request, because a client may have a token instead
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return config.Serving() },
		},
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // until Close
	return s, nil
}

// Address returns the address on which the interposer listens.
func (s *Interposer) Address() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// BreakDiscovery makes fetches of a document fail.
func (s *Interposer) BreakDiscovery(path string, how fault.DiscoveryFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[path] = &broken{how: how}
}

// RestoreDiscovery makes these fetches succeed again, and returns how many have failed.
func (s *Interposer) RestoreDiscovery(path string) (failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if document := s.broken[path]; document != nil {
		failed = document.failed
	}
	delete(s.broken, path)
	return failed
}

// Close ends all connections.
func (s *Interposer) Close() {
	_ = s.server.Close()
	for _, transport := range s.upstream {
		transport.CloseIdleConnections()
	}
}

func (s *Interposer) handler() http.Handler {
	asPeer, asIs := s.passOn(true), s.passOn(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.fromPeer(r) {
			asIs.ServeHTTP(w, r)
			return
		}
		switch how, fails := s.fails(r); {
		case !fails:
			asPeer.ServeHTTP(w, r)
		case how == fault.ServerError:
			http.Error(w, "the document could not be made", http.StatusInternalServerError)
		default:
			breakOff(w, r, asPeer, how)
		}
	})
}

// fails reports whether a fetch must fail, and how, and counts it. The method and the path identify
// a fetch: only peers use these links, and the requests that they forward are for resources and for
// the documents of single groups.
func (s *Interposer) fails(r *http.Request) (how fault.DiscoveryFailure, fails bool) {
	if r.Method != http.MethodGet {
		return fault.ServerError, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	document := s.broken[strings.TrimSuffix(r.URL.Path, "/")]
	if document == nil {
		return fault.ServerError, false
	}
	document.failed++
	return document.how, true
}

// fromPeer reports whether the request came over a connection of a peer whose certificate the
// server itself would accept. With any other, the request goes on without a certificate: if it got
// that of a peer, the server would trust a user whom it must not trust.
func (s *Interposer) fromPeer(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	certificate := r.TLS.PeerCertificates[0]
	if known, ok := s.peers.Load(string(certificate.Raw)); ok {
		return known.(bool)
	}
	_, err := certificate.Verify(x509.VerifyOptions{Roots: s.config.FrontProxyCA, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	accepted := err == nil && certificate.Subject.CommonName == s.config.FrontProxyName
	s.peers.Store(string(certificate.Raw), accepted)
	return accepted
}

// forwarded are the headers of a chain of proxies, which httputil.ReverseProxy removes. They are
// kept, because audit logs show by them that a peer has forwarded the request.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// identityPrefix is the prefix of the headers with which a peer names the user.
const identityPrefix = "X-Remote-"

// passOn returns a handler that forwards requests. If asPeer is true, it uses the certificate of a
// peer. Otherwise it uses neither this certificate nor the headers of a peer.
func (s *Interposer) passOn(asPeer bool) http.Handler {
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.config.ServingCA, ServerName: s.config.Name}
	if asPeer {
		trust.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.config.FrontProxy() }
	}
	target := &url.URL{Scheme: "https", Host: s.config.Real.String()}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			for _, name := range forwarded {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = slices.Clone(values)
				}
			}
			if !asPeer {
				for name := range r.Out.Header {
					if strings.HasPrefix(http.CanonicalHeaderKey(name), identityPrefix) {
						r.Out.Header.Del(name)
					}
				}
			}
		},
		Transport:     upgradeable{s.transport(trust, true), s.transport(trust, false)},
		FlushInterval: -1, // for watches
		ErrorLog:      log.New(io.Discard, "", 0),
		// If the server does not answer a request, the interposer does not answer it either.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

func (s *Interposer) transport(trust *tls.Config, http2 bool) *http.Transport {
	transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: http2, DisableCompression: true, MaxIdleConnsPerHost: 100}
	s.upstream = append(s.upstream, transport)
	return transport
}

// upgradeable sends upgrades over HTTP/1.1, because HTTP/2 has none (RFC 9113, 8.6).
type upgradeable struct{ http2, http1 http.RoundTripper }

func (u upgradeable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return u.http1.RoundTrip(r)
	}
	return u.http2.RoundTrip(r)
}

// breakOff ends an answer before its body is complete. It sends the headers of the server's answer,
// with the Content-Length if there is one (net/http does not set it for most documents, because
// they are too large), and a part of the body. So the answer is incomplete, as if the server had
// died.
func breakOff(w http.ResponseWriter, r *http.Request, server http.Handler, how fault.DiscoveryFailure) {
	r = r.Clone(r.Context())
	r.Header.Del("If-None-Match") // a 304 has no body
	answer := &bufferedAnswer{header: w.Header()}
	server.ServeHTTP(answer, r)
	w.WriteHeader(answer.status)
	if how == fault.CutShort {
		_, _ = w.Write(answer.body.Bytes()[:answer.body.Len()/2])
	}
	_ = http.NewResponseController(w).Flush() // otherwise the reset would discard data that is not sent yet
	panic(http.ErrAbortHandler)               // RST_STREAM; over HTTP/1.1 the connection ends
}

// bufferedAnswer is an answer that is held in memory.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *bufferedAnswer) Header() http.Header         { return b.header }
func (b *bufferedAnswer) Write(p []byte) (int, error) { return b.body.Write(p) }

// WriteHeader ignores informational statuses.
func (b *bufferedAnswer) WriteHeader(status int) {
	if b.status == 0 && status >= http.StatusOK {
		b.status = status
	}
}
