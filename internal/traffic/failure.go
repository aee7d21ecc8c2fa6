package traffic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/skewproof/skewproof/internal/history"
)

// errAttemptTimeout is the cause with which the context of one request times out. It tells a client that gave up on a
// server from a run that was over, even if the run itself ends by a deadline.
var errAttemptTimeout = errors.New("no complete response within the request timeout")

// classifyFailure says why an attempt got no complete response. The context comes first: whatever error a request ends
// with after that, the context is its cause.
func classifyFailure(ctx context.Context, err error) history.Failure {
	switch {
	case errors.Is(context.Cause(ctx), errAttemptTimeout):
		return history.FailureTimeout
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return history.FailureCanceled
	case isTimeout(err):
		return history.FailureTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return history.FailureRefused
	case isReset(err):
		return history.FailureReset
	case isTLS(err):
		return history.FailureTLS
	default:
		return history.FailureOther
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	// The HTTP/2 health check gave up waiting for a ping (golang.org/x/net/http2, errClientConnLost); not exported.
	return strings.Contains(err.Error(), "http2: client connection lost")
}

func isReset(err error) bool {
	for _, closed := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	// The HTTP/2 code inside net/http does not export its types of error, and has plain texts for a connection that went
	// away under a request (errClientConnClosed, errClientConnUnusable, errServerClosedIdle).
	text := err.Error()
	for _, known := range []string{"stream error: stream ID", "GOAWAY", "client conn", "server closed idle connection"} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "remote error: tls:") // an alert of the peer: crypto/tls keeps its type to itself on TCP; tls.AlertError is that of QUIC
}
