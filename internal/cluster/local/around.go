package local

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// ways are the administrator's connections around links and faults, for readiness and ground truth. They must work with servers that nobody else
// can trust, so the certificate that is shown is not verified by an authority, but has to be one of those that the run has issued for a
// server.
type ways struct {
	*http.Transport
	at func(netip.AddrPort) netip.AddrPort // where what is to be found at an address is at present

	mu     sync.Mutex
	issued map[[sha256.Size]byte]bool // certificates
}

// newWays makes them for the client certificate in two files.
func newWays(certFile, keyFile string, at func(netip.AddrPort) netip.AddrPort) (*ways, error) {
	admin, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("prepare the administrator's connections: %w", err)
	}
	w := &ways{at: at, issued: map[[sha256.Size]byte]bool{}}
	w.Transport = &http.Transport{
		DialContext:         w.dial,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{admin}, InsecureSkipVerify: true, VerifyConnection: w.verify},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
	return w, nil
}

// accept takes the certificate in a file for one of a server.
func (w *ways) accept(file string) error {
	certs, err := cert.CertsFromFile(file)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.issued[sha256.Sum256(certs[0].Raw)] = true
	return nil
}

func (w *ways) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("no certificate was shown")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if shown := state.PeerCertificates[0]; !w.issued[sha256.Sum256(shown.Raw)] {
		return fmt.Errorf("the certificate of %s that was shown is none that this run has issued for a server", shown.Subject)
	}
	return nil
}

func (w *ways) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, w.at(to).String())
}
