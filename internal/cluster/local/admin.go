package local

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// adminTransport makes the administrator's connections around links and faults, for readiness and
// ground truth. It must also work with servers whose certificates no other client trusts. So it
// does not verify the authority of a certificate. Instead, the certificate must be one that the run
// has issued for a server.
type adminTransport struct {
	*http.Transport

	mu     sync.Mutex
	issued map[[sha256.Size]byte]bool // certificates
}

// newAdminTransport uses the client certificate in two files.
func newAdminTransport(certFile, keyFile string) (*adminTransport, error) {
	admin, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("prepare the administrator's connections: %w", err)
	}
	t := &adminTransport{issued: map[[sha256.Size]byte]bool{}}
	t.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{admin},
			InsecureSkipVerify: true, VerifyConnection: t.verify, //nolint:gosec // t.verify verifies
		},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
	return t, nil
}

// accept trusts the certificate in a file. The run has issued it for a server.
func (t *adminTransport) accept(file string) error {
	certs, err := cert.CertsFromFile(file)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued[sha256.Sum256(certs[0].Raw)] = true
	return nil
}

func (t *adminTransport) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("no certificate was shown")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shown := state.PeerCertificates[0]; !t.issued[sha256.Sum256(shown.Raw)] {
		return fmt.Errorf("the certificate of %s that was shown is none that this run has issued for a server", shown.Subject)
	}
	return nil
}

// certificateTimeout limits a handshake that only reads a certificate.
const certificateTimeout = 5 * time.Second

func (t *adminTransport) certificateAt(ctx context.Context, at netip.AddrPort) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: t.TLSClientConfig}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate at %s: %w", at, err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// asAdmin makes connections as the administrator, one for each request, that verify certificates
// and use links like those of every other client.
func (c *Cluster) asAdmin() (*http.Transport, error) {
	admin, err := tls.LoadX509KeyPair(c.config.Files.key("admin.crt"), c.config.Files.key("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("prepare connections as the administrator: %w", err)
	}
	return &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: c.pool("ca"), Certificates: []tls.Certificate{admin}},
	}, nil
}

func describe(c *x509.Certificate) string {
	return fmt.Sprintf("%s by %s, no. %x, until %s", c.Subject, c.Issuer, c.SerialNumber, c.NotAfter.UTC().Format(time.RFC3339))
}
