package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// CausePeer is the type of the causes in a 503. There is one cause for each peer that serves or may
// serve the request. Its message is the peer's identity and the peer's problem.
const CausePeer metav1.CauseType = "PeerUnavailable"

// retryAfter is the value of Retry-After in a 503, in seconds, if the cause is expected to end by
// then.
const retryAfter = 1

// statuses encodes metav1.Status as JSON, YAML and protobuf.
var statuses = func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}()

// fail answers with an error.
func (e *exchange) fail(err error) {
	responsewriters.ErrorNegotiated(err, statuses, e.request.Resource.GroupVersion(), e.w, e.r)
}

func forbidden(err error) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
}

// unavailable answers 503 as the policy says.
func (e *exchange) unavailable(d Decision) {
	if e.policy.Quirks.PlainErrors {
		if e.last != nil { // upstream: responder.Error
			http.Error(e.w, e.plain(), http.StatusServiceUnavailable)
			return
		}
		if d.Reason == ReasonUnresolved { // upstream: WrapHandler
			e.fail(apierrors.NewServiceUnavailable("Error getting ip and port info of the remote server while proxying"))
			return
		}
	}
	if e.request.Rerouted && d.Reason == ReasonRerouted && e.h.config.FromPeer(e.r) {
		e.w.Header().Set(RefusedHeader, "true")
	}
	e.fail(&apierrors.StatusError{ErrStatus: e.status(d)})
}

// plain is the error of the last attempt, in upstream's words. They differ for upgrades
// (apimachinery, util/proxy, transport.go and upgradeaware.go).
func (e *exchange) plain() string {
	var op *net.OpError
	switch {
	case requestedProtocol(e.r) == "":
		return "error trying to reach service: " + e.last.Error()
	case errors.As(e.last, &op) && op.Op == "dial":
		return "error dialing backend: " + e.last.Error()
	}
	return e.last.Error()
}

// status is the body of a 503. It names peers by identity and never by address.
func (e *exchange) status(d Decision) metav1.Status {
	r := e.request.Resource
	details := &metav1.StatusDetails{Group: r.Group, Kind: r.Resource}
	if e.request.Kind == KindResource {
		details.Name = e.info.Name
	}
	for _, p := range d.Peers {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: CausePeer, Message: string(p.ID.Identity()) + ": " + p.Trouble})
	}
	details.RetryAfterSeconds = e.retryAfter(d)
	return metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusServiceUnavailable,
		Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("%s cannot be served at this time: %s", cmp.Or(r.String(), "this"),
			cmp.Or(e.tooManyHeaders(), reasons[d.Reason], "this server does not serve it, and no peer that does could be reached")),
		Details: details,
	}
}

// tooManyHeaders is the end of a 503's message if the last peer does not accept the headers.
// Otherwise it is empty.
func (e *exchange) tooManyHeaders() string {
	if headers := (*headersError)(nil); errors.As(e.last, &headers) {
		return "this server does not serve it, and of a peer that does: " + headers.Error()
	}
	return ""
}

// retryAfter is the number of seconds after which the client may send the request again; 0: the 503
// has no Retry-After. If a 503 has a Retry-After, a client of client-go sends the request up to ten
// more times, with any method, while its caller waits. So a 503 has a Retry-After only if its cause
// ends within about a second: this server is starting, or one server's knowledge of another is old.
// If a peer cannot be reached, it is unknown when this ends.
func (e *exchange) retryAfter(d Decision) int32 {
	soon := d.Reason == ReasonUnsynced || d.Reason == ReasonRerouted || e.soon
	if !soon || !e.safeToRepeat() {
		return 0
	}
	return retryAfter
}

// safeToRepeat reports whether the client may send the request again.
func (e *exchange) safeToRepeat() bool {
	return e.request.Repeatable || !slices.ContainsFunc(e.tried, func(a Attempt) bool { return a.Outcome == Undecided })
}

// reasons has the ends of a 503's messages. Each other reason means that no peer could be reached.
var reasons = map[Reason]string{
	ReasonRerouted:      "another server sent the request here, and this one does not serve it",
	ReasonUnsynced:      "this server does not know yet what it and its peers serve",
	ReasonUnknown:       "this server does not serve it, and it is not known whether these peers do",
	ReasonWatchStalled:  "this server does not serve it, and its watch on the servers' leases has stalled, so it may not know every peer",
	ReasonUnresolved:    "this server does not serve it, and it is not known where to reach the peers that do",
	ReasonNotRepeatable: "a peer that serves it failed, and the request cannot be sent to another",
}
