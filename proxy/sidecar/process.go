package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/proxy/peers"
)

// loopbackName is the name of the certificate that every kube-apiserver process makes for its own
// loopback client (k8s.io/apiserver, SecureServingOptionsWithLoopback; checked: v0.30 to v0.37). No
// other process has the same certificate, so a TLS handshake identifies the process.
const loopbackName = "apiserver-loopback-client"

// processOf identifies the process that serves an address.
type processOf struct {
	upstream *url.URL
	get      func(ctx context.Context, path string) (*http.Response, error)
}

// name returns a name of the process. After an error, the caller may try again. A server that
// cannot be identified gets a new name each time. This is safe: peers then fetch its discovery
// again.
func (p processOf) name(ctx context.Context) (string, error) {
	name, err := p.loopbackCertificate(ctx)
	if errors.Is(err, errNotIdentified) {
		name, err = p.startTime(ctx)
	}
	if errors.Is(err, errNotIdentified) {
		return uuid.NewString(), nil
	}
	return name, err
}

var errNotIdentified = errors.New("the server does not identify its process")

// loopbackCertificate returns the fingerprint of the certificate for loopbackName. This certificate
// is self-signed and cannot be verified. It is only compared with the last one, and no request is
// sent.
func (p processOf) loopbackCertificate(ctx context.Context) (string, error) {
	dialer := tls.Dialer{Config: &tls.Config{
		ServerName: loopbackName, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, //nolint:gosec // see above
	}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(p.upstream.Hostname(), portOf(p.upstream)))
	if err != nil {
		return "", fmt.Errorf("identify the process of the local kube-apiserver: %w", err)
	}
	defer conn.Close()
	cert := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if cert.VerifyHostname(loopbackName) != nil {
		return "", errNotIdentified // not a kube-apiserver: the server ignores the name
	}
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:10]), nil
}

var startTimePrefix = []byte("process_start_time_seconds ")

// startTime returns the process's start time from /metrics, precise to 10 ms. It reads megabytes.
func (p processOf) startTime(ctx context.Context) (string, error) {
	answer, err := p.get(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return "", fmt.Errorf("read the start time of the local kube-apiserver: %s", answer.Status)
	case answer.StatusCode != http.StatusOK:
		return "", errNotIdentified
	}
	found := ""
	lines := bufio.NewScanner(io.LimitReader(answer.Body, maxMetrics))
	lines.Buffer(nil, maxMetrics)
	for lines.Scan() { // read to the end, so that the connection can be reused
		if value, ok := bytes.CutPrefix(lines.Bytes(), startTimePrefix); ok {
			found = string(bytes.TrimSpace(value))
		}
	}
	switch {
	case lines.Err() != nil:
		return "", fmt.Errorf("read the start time of the local kube-apiserver: %w", lines.Err())
	case found == "":
		return "", errNotIdentified
	}
	return found, nil
}

const maxMetrics = 256 << 20 // bytes

// serverID returns the identity of a kube-apiserver on a host. It is a hash of the host name and
// the component's name, each after its length in two bytes. Source: NewConfig in
// k8s.io/apiserver/pkg/server/config.go.
func serverID(hostname string) string {
	hash := sha256.New()
	for _, part := range []string{hostname, "kube-apiserver"} {
		hash.Write(binary.BigEndian.AppendUint16(nil, uint16(len(part))))
		hash.Write([]byte(part))
	}
	name := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash.Sum(nil)[:16])
	return "apiserver-" + strings.ToLower(name)
}

const (
	identityEvery = 5 * time.Second
	// identityTimeout is how long a ready kube-apiserver may be without its identity lease. It
	// renews the lease every 10 s.
	identityTimeout = 30 * time.Second
)

// checkIdentity warns if the local kube-apiserver has another name than --server-id. Peers would
// take the two names for two servers. One of these is never reachable, so peers would answer 503
// for everything that it might serve. checkIdentity returns when it has found the lease.
func (s *sidecar) checkIdentity(ctx context.Context, client kubernetes.Interface) {
	missing := time.Duration(0)
	_ = wait.PollUntilContextCancel(ctx, identityEvery, false, func(ctx context.Context) (found bool, _ error) {
		if !s.probe.Ready() {
			return false, nil
		}
		_, err := client.CoordinationV1().Leases(peers.Namespace).Get(ctx, string(s.server), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			if missing += identityEvery; missing == identityTimeout {
				s.log.Warn("the local kube-apiserver has no identity lease of this name: if its host has another name, give the name of its lease in "+
					peers.Namespace+" as --server-id", "server", s.server)
			}
		}
		return err == nil, nil
	})
}
