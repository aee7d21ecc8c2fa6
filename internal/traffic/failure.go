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

// errAttemptTimeout is the cause with which the context of one request times out. It distinguishes
// a client that gave up from the end of the run, even if the run ends by a deadline.
var errAttemptTimeout = errors.New("no complete response within the request timeout")

// classifyFailure says why an attempt got no complete response. It checks the context first,
// because after the end of the context every error follows from this end.
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
	// The HTTP/2 health check missed a ping (golang.org/x/net/http2, errClientConnLost).
	return strings.Contains(err.Error(), "http2: client connection lost")
}

func isReset(err error) bool {
	for _, closed := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	// net/http exports no types for HTTP/2 errors. For a closed connection it has plain texts
	// (errClientConnClosed, errClientConnUnusable, errServerClosedIdle).
	text := err.Error()
	for _, known := range []string{"stream error: stream ID", "GOAWAY", "client conn", "server closed idle connection"} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}

func isTLS(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[tls.RecordHeaderError](err) || is[tls.AlertError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err) ||
		strings.Contains(err.Error(), "remote error: tls:") // a TLS alert of the peer; crypto/tls does not export its type
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
