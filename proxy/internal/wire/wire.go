// Package wire holds what the handler, the sources and the sidecar must treat alike in requests to another server: how large their
// headers may be, which headers must not reach it, which requests last, and which errors are TLS alerts.
package wire

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
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
