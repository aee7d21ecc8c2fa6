// Package wire holds what the handler, the sources and the sidecar must treat alike in requests to another server: how large their
// headers may be, which headers must not reach it, which requests last, and which errors are TLS alerts.
package wire

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"fmt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"net/url"
)

// LongRunning reports whether the answer is a stream that may last for ever (k8s.io/apiserver, server/filters,
// BasicLongRunningRequestCheck with the arguments of kube-apiserver).
func LongRunning(info *apirequest.RequestInfo) bool {
	if info.Verb == "watch" || info.Verb == "proxy" {
		return true
	}
	switch info.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return false
}

// KeepFromRepeating writes in lower case the names of the headers that make net/http send a request again although it may have been
// carried out (Request.isReplayable): nothing in Kubernetes keeps what they promise. To a server the names are the same.
func KeepFromRepeating(h http.Header) {
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			lower := strings.ToLower(name)
			h[lower] = slices.Concat(h[lower], values)
			delete(h, name)
		}
	}
}

// BearerProtocol begins the WebSocket protocol in which a browser sends a bearer token
// (k8s.io/apiserver, authentication/request/websocket).
const BearerProtocol = "base64url.bearer.authorization.k8s.io."

// DropTokenProtocols removes bearer tokens from the WebSocket protocols that a request offers: another server is told who the user
// is, and never gets what proves it. The authenticator of the API machinery removes a token only if it authenticated the caller.
func DropTokenProtocols(h http.Header) {
	const name = "Sec-Websocket-Protocol"
	if !slices.ContainsFunc(h[name], func(p string) bool { return strings.Contains(p, BearerProtocol) }) {
		return
	}
	var kept []string
	for _, line := range h[name] {
		for p := range strings.SplitSeq(line, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, BearerProtocol) {
				kept = append(kept, p)
			}
		}
	}
	if len(kept) == 0 {
		delete(h, name)
		return
	}
	h[name] = []string{strings.Join(kept, ", ")}
}

// SentAlert reports whether an error says that the other side ended a TLS connection with an alert, as a server does that refuses
// our certificate. Under TLS 1.3 the handshake is over for us by then, so that the error may come instead of an answer. On TCP
// crypto/tls does not export the alert's type; tls.AlertError is that of QUIC.
func SentAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

const (
	// maxHeaderList is the largest size of a request's headers that a kube-apiserver is sure to take, in bytes (k8s.io/apiserver,
	// secure_serving.go).
	maxHeaderList = http.DefaultMaxHeaderBytes
	// headerOverhead is added for each header to the size of its name and value (RFC 9113, 6.5.2).
	headerOverhead = 32
	// addedHeaders is room for the headers that a transport adds.
	addedHeaders = 1 << 10
)

// CheckHeaderSize returns a Status of 431 for a request whose target and headers, names of trailers included, are larger than a
// kube-apiserver takes by HTTP/2. By HTTP/1.1 a client may send more, because short headers count for less there. Sending it on
// would end in an error that looks like the other server's fault, and may break a connection that many requests share
// (golang.org/x/net/http2, Framer.readMetaFrame).
func CheckHeaderSize(target *url.URL, headers ...http.Header) error {
	size := addedHeaders + len(target.RequestURI())
	for _, h := range headers {
		for name, values := range h { // in any order
			if len(values) == 0 { // of a trailer, which has none yet: its name is in a list
				size += len(name) + 1
			}
			for _, v := range values {
				size += headerOverhead + len(name) + len(v)
				if strings.EqualFold(name, "Cookie") { // a transport makes a header of each (RFC 9113, 8.2.3)
					size += strings.Count(v, ";") * (headerOverhead + len(name))
				}
			}
		}
	}
	if size <= maxHeaderList {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestHeaderFieldsTooLarge,
		Message: fmt.Sprintf("the request's headers are too large: limit is %d bytes, of which each takes %d beside its name and its value", maxHeaderList, headerOverhead),
	}}
}
