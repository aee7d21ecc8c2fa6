package sidecar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
)

// identify returns the serving certificate at the address of a peer. It verifies the certificate
// like that of every peer. It sends no request and shows no client certificate.
func (c *credentials) identify(ctx context.Context, address string) (*x509.Certificate, error) {
	config := c.clientTLS(c.peerCA, peerServerName)
	config.GetClientCertificate = nil
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
