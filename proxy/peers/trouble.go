package peers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// trouble says for clients why a fetch failed. It translates network and certificate errors,
// because their own texts name addresses.
func trouble(err error) string {
	var status statusError
	var document documentError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &document):
		return document.Error()
	case timedOut(err):
		return "it did not answer in time"
	case errors.Is(err, context.Canceled):
		return "the fetch was given up"
	case wire.Is[x509.UnknownAuthorityError](err):
		return "its certificate is signed by an authority that is not trusted"
	case wire.Is[x509.HostnameError](err):
		return "its certificate is for another name"
	case wire.Is[x509.CertificateInvalidError](err):
		return "its certificate is not valid"
	case wire.SentAlert(err):
		return "it refused the TLS handshake"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refused the connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it broke the connection off"
	}
	return "it could not be reached"
}

// timedOut reports whether an error only means that there is no answer yet.
func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// statusError is the status of an answer that is not the document.
type statusError int

func (e statusError) Error() string {
	switch {
	case e >= 300 && e < 400:
		return fmt.Sprintf("it answered %d, and redirects are not followed", int(e))
	case e == http.StatusUnauthorized:
		return "it answered 401: it does not accept this server's front-proxy certificate"
	}
	return fmt.Sprintf("it answered %d", int(e))
}

// documentError says that an answer is not a document. Its text may quote the answer.
type documentError struct{ err error }

func (e documentError) Error() string {
	text := e.err.Error()
	if len(text) > 200 { // it may quote the server's answer
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return "its answer cannot be used: " + text
}
func (e documentError) Unwrap() error { return e.err }
