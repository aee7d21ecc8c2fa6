// Package interpose stands between one apiserver and its peers and lets chosen discovery documents of that server fail, or break off. All else it passes
// on as it came: to peers it is the server, to the server it is the peer.
//
// It can do so because it has the keys of both. It lends its certificate only to those who have proved to be peers themselves.
package interpose

import (
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

// Config says between whom to stand. All fields are needed.
type Config struct {
	// Real is where the server listens, and Name the name under which its certificate is verified.
	Real netip.AddrPort
	Name string
	// Serving is the certificate that the server shows now. It is called for each connection and must be safe for concurrent use.
	Serving func() (*tls.Certificate, error)
	// ServingCA has signed it.
	ServingCA *x509.CertPool
	// FrontProxy is the certificate by which peers prove that they may speak for users, and FrontProxyCA what has signed it.
	FrontProxy   func() (*tls.Certificate, error)
	FrontProxyCA *x509.CertPool
}

// Interposer is a running one. Its methods may be called concurrently.
type Interposer struct {
	config   Config
	listener net.Listener
	server   *http.Server
	ways     []*http.Transport // to the real server
	peers    sync.Map          // certificates that were verified: the raw bytes as a string → bool

	mu     sync.Mutex
	broken map[string]*broken // by path
}

// broken is a document of which fetches fail.
type broken struct {
	how    fault.DiscoveryFailure
	failed int // fetches
}

// New listens on a loopback port. Nothing is broken yet.
func New(config Config) (*Interposer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand in front of %s: %w", config.Real, err)
	}
	s := &Interposer{config: config, listener: listener, broken: map[string]*broken{}}
	s.server = &http.Server{
		Handler:  s.handler(),
		ErrorLog: log.New(io.Discard, "", 0), // whose connections break is in the records of faults
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			ClientAuth:     tls.RequestClientCert, // verified with each request: who has none may come with a token
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return config.Serving() },
		},
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // ends with Close
	return s, nil
}

// Address is where it listens.
func (s *Interposer) Address() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// BreakDiscovery lets fetches of a document fail.
func (s *Interposer) BreakDiscovery(path string, how fault.DiscoveryFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[path] = &broken{how: how}
}

// RestoreDiscovery lets them succeed again, and returns how many have failed.
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
	for _, way := range s.ways {
		way.CloseIdleConnections()
	}
}

func (s *Interposer) handler() http.Handler {
	asPeer, asItCame := s.passOn(true), s.passOn(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.fromPeer(r) {
			asItCame.ServeHTTP(w, r)
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

// fails reports, and counts, a fetch that is to fail, and how. Nobody but peers asks over these links, and requests of their clients are for
// resources and for the documents of single groups.
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

// fromPeer reports whether the request came over a connection that a peer has made.
func (s *Interposer) fromPeer(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	certificate := r.TLS.PeerCertificates[0]
	if known, ok := s.peers.Load(string(certificate.Raw)); ok {
		return known.(bool)
	}
	_, err := certificate.Verify(x509.VerifyOptions{Roots: s.config.FrontProxyCA, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s.peers.Store(string(certificate.Raw), err == nil)
	return err == nil
}

// forwarded are the headers by which a chain of proxies is told, which httputil.ReverseProxy takes away. Audit logs tell by them that a peer has
// passed the request on.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// identityPrefix is that of all headers that say for whom a peer asks.
const identityPrefix = "X-Remote-"

// passOn sends requests on: with the certificate of a peer, or without any, and then without a peer's headers.
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
		Transport:     upgradeable{s.way(trust, true), s.way(trust, false)},
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		// What the server did not answer, the peer shall not be answered.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// way is a way to the real server.
func (s *Interposer) way(trust *tls.Config, http2 bool) *http.Transport {
	way := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: http2, DisableCompression: true, MaxIdleConnsPerHost: 100}
	s.ways = append(s.ways, way)
	return way
}

// upgradeable sends what is to become another protocol over HTTP/1.1, which alone can be upgraded (RFC 9113, 8.6).
type upgradeable struct{ http2, http1 http.RoundTripper }

func (u upgradeable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return u.http1.RoundTrip(r)
	}
	return u.http2.RoundTrip(r)
}
