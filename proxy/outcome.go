package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"golang.org/x/net/http2"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// NotDeliveredError may be implemented by errors of a transport. If NotDelivered is true, the
// request certainly did not reach the peer. [net/http.Transport] does not need it.
type NotDeliveredError interface {
	error
	NotDelivered() bool
}

// outcomeOf says whether a request without an answer was certainly not delivered. Any doubt makes
// it undecided.
//
// A transport that found no connection delivered nothing. It may have tried an idle connection
// before, but it repeats only what that connection did not take or what may be repeated anyway
// (net/http, shouldRetryRequest; x/net/http2, canRetryError). A failed dial says nothing about a
// request written earlier on another connection; see attemptTrace.
func outcomeOf(err error, trace *attemptTrace) Outcome {
	reached := trace.delivery()
	if reached == connecting {
		return NotDelivered
	}
	var said NotDeliveredError
	if errors.As(err, &said) && said.NotDelivered() {
		return NotDelivered
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && reached != written {
		return NotDelivered
	}
	var stream http2.StreamError
	if errors.As(err, &stream) && stream.Code == http2.ErrCodeRefusedStream {
		return NotDelivered // RFC 9113, 8.7: no processing was done
	}
	return Undecided
}

// troubleOf describes a peer's problem without an address.
func troubleOf(err error, outcome Outcome) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		timeout  net.Error
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		return "its certificate was not accepted"
	case wire.SentAlert(err):
		return "it broke the TLS connection off"
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.Is(err, errNoAnswerInTime) && outcome == NotDelivered, outcome == NotDelivered && errors.As(err, &timeout) && timeout.Timeout():
		return "it could not be reached in time"
	case outcome == NotDelivered:
		return "it could not be reached"
	case errors.Is(err, errNoAnswerInTime), errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time"
	}
	return "the connection broke before it answered"
}
