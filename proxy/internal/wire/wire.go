// Package wire has code that the handler, the sources and package apiserver share: header sizes,
// forbidden headers, kinds of requests, and TLS alerts.
package wire

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// LongRunning reports whether an answer may last for ever (k8s.io/apiserver, server/filters,
// BasicLongRunningRequestCheck with kube-apiserver's arguments).
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

// Anonymous reports whether a kube-apiserver takes a user for unauthenticated. It ends an HTTP/2
// connection after a request of such a user (k8s.io/apiserver, endpoints/filters, isAnonymousUser).
func Anonymous(u user.Info) bool {
	return u.GetName() == user.Anonymous || slices.Contains(u.GetGroups(), user.AllUnauthenticated)
}

// ReadFirst reports whether a short body is read before the request is forwarded, so that a slow
// client occupies only this server. It returns false if the client waits until it is told to send
// the body (RFC 9110, 10.1.1), if the caller is unknown, or if the answer may last for ever.
func ReadFirst(r *http.Request, unknown, stream bool) bool {
	return !stream && !unknown && !httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
}

// ThroughProxy reports whether a pod, a service or a node answers, and not the API server.
func ThroughProxy(info *apirequest.RequestInfo) bool {
	return info.Verb == "proxy" || info.Subresource == "proxy"
}

// KeepFromRepeating changes some headers to lower case. With these headers, net/http repeats a
// request that may have been carried out (Request.isReplayable), but Kubernetes does not honour
// them.
func KeepFromRepeating(h http.Header) {
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			h[strings.ToLower(name)] = values
			delete(h, name)
		}
	}
}

// BearerProtocol is the beginning of the WebSocket protocol in which a browser sends a bearer token
// (k8s.io/apiserver, authentication/request/websocket).
const BearerProtocol = "base64url.bearer.authorization.k8s.io."

// DropTokenProtocols removes bearer tokens from the WebSocket protocols that a request offers.
// Another server gets the user in headers, and must not get the token that proves this user. The
// authenticator of the API machinery removes a token only if the token authenticated the caller.
func DropTokenProtocols(h http.Header) {
	const name = "Sec-Websocket-Protocol"
	if !slices.ContainsFunc(h[name], func(p string) bool { return strings.Contains(p, BearerProtocol) }) {
		return
	}
	kept := slices.DeleteFunc(slices.Collect(Tokens(h[name])), func(p string) bool { return strings.HasPrefix(p, BearerProtocol) })
	if len(kept) == 0 {
		delete(h, name)
		return
	}
	h[name] = []string{strings.Join(kept, ", ")}
}

// CheckSendable returns a Status of 400 for a request that no HTTP transport sends. HTTP/2 servers
// accept methods that are not tokens (RFC 9110, 9.1), but clients refuse to send them. The error
// says nothing about the server to which the request would be sent.
func CheckSendable(r *http.Request) error {
	if r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method) { // both are tokens
		return apierrors.NewBadRequest("the request's method is not valid")
	}
	return nil
}

// KeysThatDifferInCase returns two keys of extra attributes that differ only in the case of
// letters, or nothing. Header names have no case (RFC 9110, 5.1), so the recipient would take them
// for one key.
func KeysThatDifferInCase(extra map[string][]string) (one, other string) {
	if len(extra) < 2 {
		return "", ""
	}
	seen := make(map[string]string, len(extra))
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		folded := strings.ToLower(key)
		if before, ok := seen[folded]; ok {
			return before, key
		}
		seen[folded] = key
	}
	return "", ""
}

// Tokens yields the non-empty elements of comma-separated lists, without spaces around them.
func Tokens(lists []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range lists {
			for token := range strings.SplitSeq(list, ",") {
				if token = strings.TrimSpace(token); token != "" && !yield(token) {
					return
				}
			}
		}
	}
}

// Is reports whether an error is, or wraps, an error of the type T.
func Is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// SentAlert reports whether the other side ended a TLS connection with an alert. A server that
// refuses our certificate does this. In TLS 1.3 the alert may come instead of an answer. For TCP,
// crypto/tls does not export the type of the alert: tls.AlertError is for QUIC.
func SentAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

const (
	// maxHeaderList is the size of headers, in bytes, that every kube-apiserver accepts
	// (k8s.io/apiserver, secure_serving.go).
	maxHeaderList = http.DefaultMaxHeaderBytes
	// headerOverhead is counted for each header in addition to its name and value (RFC 9113,
	// 6.5.2).
	headerOverhead = 32
	// addedHeaders is the space for the headers that a transport adds.
	addedHeaders = 1 << 10
)

// ManyHeaderValues is how many header values every server accepts beside those that a transport
// adds. If it was built with Go 1.27 or newer, a kube-apiserver refuses more than 500 (net/http,
// DefaultMaxHeaderValueCount), or 16,384 from 1.38 on (k8s.io/apiserver, setMaxHeaderValueCount).
// Over HTTP/2 it may then end the connection with all its requests (net/http/internal/http2,
// Framer.readMetaFrame).
const ManyHeaderValues = 480

// HeaderValues returns the number of header values that HTTP/2 makes of headers.
func HeaderValues(h http.Header) (n int) {
	for name, values := range h { // in any order
		n += len(values)
		if name == "Cookie" { // a transport makes one header from each cookie (RFC 9113, 8.2.3)
			for _, v := range values {
				n += strings.Count(v, ";")
			}
		}
	}
	return n
}

// CheckHeaderSize returns a Status of 431 if a request's target and headers are larger than a
// kube-apiserver accepts over HTTP/2. HTTP/1.1 counts less for short headers. If such a request
// were forwarded, the failure would look like the other server's fault. It could also break a
// connection that many requests share (golang.org/x/net/http2, Framer.readMetaFrame).
func CheckHeaderSize(target *url.URL, h http.Header) error {
	size := addedHeaders + len(target.RequestURI())
	for name, values := range h { // in any order
		for _, v := range values {
			size += headerOverhead + len(name) + len(v)
			if name == "Cookie" { // a transport makes one header from each cookie (RFC 9113, 8.2.3)
				size += strings.Count(v, ";") * (headerOverhead + len(name))
			}
		}
	}
	if size <= maxHeaderList {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestHeaderFieldsTooLarge,
		Message: fmt.Sprintf("the request's headers are too large: limit is %d bytes, of which each takes %d beside its name and its value",
			maxHeaderList, headerOverhead),
	}}
}
