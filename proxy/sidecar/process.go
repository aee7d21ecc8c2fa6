package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/uuid"
)

// loopbackName is the name under which every process of a kube-apiserver serves a certificate that it has made for itself, to talk to
// itself (k8s.io/apiserver, SecureServingOptionsWithLoopback; read: v0.30 to v0.37). No other process has it, so it tells one process
// from the next, at the price of a handshake.
const loopbackName = "apiserver-loopback-client"

// processOf tells which process serves an address.
type processOf struct {
	upstream *url.URL
	get      func(ctx context.Context, path string) (*http.Response, error)
}

// name returns a name of the process. An error means that nothing was found out now and that asking again may help. A server that
// does not tell gets a new name each time, which is on the safe side: peers learn anew what they knew.
func (p processOf) name(ctx context.Context) (string, error) {
	name, err := p.loopbackCertificate(ctx)
	if !errors.Is(err, errNotIdentified) {
		return name, err
	}
	name, err = p.startTime(ctx)
	if errors.Is(err, errNotIdentified) {
		return uuid.NewString(), nil
	}
	return name, err
}

var errNotIdentified = errors.New("the server does not tell which process it is")

// loopbackCertificate is the fingerprint of the certificate for loopbackName. It is self-signed, so nothing is believed of it but that it
// is the same as before or another; nothing is sent either.
func (p processOf) loopbackCertificate(ctx context.Context) (string, error) {
	dialer := tls.Dialer{Config: &tls.Config{ServerName: loopbackName, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	address := p.upstream.Host
	if p.upstream.Port() == "" {
		address = net.JoinHostPort(p.upstream.Hostname(), "443")
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("ask the local kube-apiserver which process it is: %w", err)
	}
	defer conn.Close()
	cert := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if cert.VerifyHostname(loopbackName) != nil {
		return "", errNotIdentified // something that is no kube-apiserver gives the certificate that it gives everybody
	}
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:10]), nil
}

var startTimePrefix = []byte("process_start_time_seconds ")

// startTime is the process's start time as /metrics tells it, to 10 ms. It costs megabytes.
func (p processOf) startTime(ctx context.Context) (string, error) {
	answer, err := p.get(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return "", fmt.Errorf("ask the local kube-apiserver for its start time: %s", answer.Status)
	case answer.StatusCode != http.StatusOK:
		return "", errNotIdentified
	}
	found := ""
	lines := bufio.NewReader(io.LimitReader(answer.Body, maxMetrics))
	for {
		line, err := lines.ReadSlice('\n')
		if value, ok := bytes.CutPrefix(line, startTimePrefix); ok {
			found = string(bytes.TrimSpace(value))
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull): // a long line, of no interest
		case !errors.Is(err, io.EOF):
			return "", fmt.Errorf("ask the local kube-apiserver for its start time: %w", err)
		case found == "":
			return "", errNotIdentified
		default:
			return found, nil
		}
	}
}

const maxMetrics = 256 << 20 // bytes of /metrics to read before giving up
