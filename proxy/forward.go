package proxy

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/replay"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// forwarding is a request that the handler sends to peers.
type forwarding struct {
	*exchange
	protocol string // to which the client wants to switch, "" for none
	stream   bool   // the answer may last for ever
	header   http.Header
	target   url.URL // all but the host
	body     *replay.Body
}

// forward sends the request to one peer after another until one answers or the table gives up.
func (e *exchange) forward(d Decision) {
	f := &forwarding{
		exchange: e,
		protocol: requestedProtocol(e.r),
		stream:   wire.LongRunning(e.info),
		target:   peerURL(e.r.URL, e.policy.Quirks.EncodeQuery),
	}
	if !httpguts.ValidHeaderFieldValue(f.protocol) {
		e.fail(apierrors.NewBadRequest("the Upgrade header names no protocol"))
		return
	}
	if f.protocol != "" && e.r.ContentLength != 0 {
		// Bytes after the request belong to the new protocol. A handshake has no body (RFC 6455,
		// 4.1).
		e.fail(apierrors.NewBadRequest("a request that asks for another protocol must have no body"))
		return
	}
	if err := wire.CheckSendable(e.r); err != nil {
		e.fail(err)
		return
	}
	u, ok := apirequest.UserFrom(e.r.Context())
	if !ok {
		e.fail(apierrors.NewInternalError(errNobody))
		return
	}
	header, err := e.h.peerHeader(e.r, u, f.protocol, e.policy.Quirks)
	if err != nil {
		e.fail(err)
		return
	}
	if !e.policy.Quirks.PlainErrors { // upstream does not check
		if err := wire.CheckHeaderSize(&f.target, header); err != nil {
			e.fail(err)
			return
		}
	}
	f.header = header
	f.body = replay.New(e.r, replay.Bound)
	defer f.body.Close()
	if wire.ReadFirst(e.r, wire.Anonymous(u), f.stream) && f.body.Prefetch() != nil {
		f.blameClient()
		return
	}

	for d.Action == Forward {
		if f.try(d) {
			return
		}
		d = f.next()
	}
	e.unavailable(d)
}

func (f *forwarding) next() Decision {
	if f.body.Replayable() {
		return f.decide()
	}
	d := Decision{Action: Unavailable, Reason: ReasonNotRepeatable}
	for _, a := range f.tried {
		d.Peers = append(d.Peers, PeerTrouble{a.Peer, a.Trouble})
	}
	slices.SortFunc(d.Peers, func(a, b PeerTrouble) int { return strings.Compare(string(a.ID), string(b.ID)) })
	f.h.observer.Decided(f.r.Context(), f.request, d, len(f.tried))
	return d
}

// peerURL is the URL for a peer, still without the peer's address. The host of the client's URL is
// not used.
func peerURL(u *url.URL, encodeQuery bool) url.URL {
	if encodeQuery { // like upstream
		return url.URL{Scheme: "https", Path: u.Path, RawQuery: u.Query().Encode()}
	}
	return url.URL{Scheme: "https", Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
}

// peerHeader makes the headers for a peer. It copies the client's headers, whose names are valid
// and canonical because a server has read them, without hop-by-hop headers (RFC 9110, 7.6.1),
// credentials and identity headers. It adds the identity of the authenticated user.
//
// kube-apiserver removes the Authorization header when it has authenticated a request
// (k8s.io/apiserver, endpoints/filters, WithAuthentication), so no upstream peer sees that header
// either. Impersonation headers are passed on: the peer checks whether this user may use them.
func (h *Handler) peerHeader(r *http.Request, u user.Info, protocol string, quirks Quirks) (http.Header, error) {
	listed, err := connectionOptions(r.Header, quirks.TrustAnyHop)
	if err != nil {
		return nil, err
	}
	header := make(http.Header, len(r.Header)+8)
	for name, values := range r.Header { // in any order
		if !hopByHop(name) && name != "Authorization" && !h.identity.is(name) && !slices.Contains(listed, name) {
			header[name] = values
		}
	}
	wire.KeepFromRepeating(header)
	wire.DropTokenProtocols(header)
	if protocol != "" && quirks.UpgradesWithoutIdentity {
		// the peer answers 401
	} else if err := h.identity.set(header, u); errors.Is(err, errNobody) {
		return nil, apierrors.NewInternalError(err)
	} else if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: forbidden(err)}
	}
	header[HopHeader] = hopValue
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		header["Te"] = trailersValue
	}
	if protocol != "" {
		header["Connection"], header["Upgrade"] = []string{"Upgrade"}, []string{protocol}
	}
	if id, ok := audit.AuditIDFrom(r.Context()); ok {
		header.Set(auditinternal.HeaderAuditID, string(id)) // Set, because the constant is not canonical
	}
	// The peer's audit log names the client by these (apimachinery, util/net, SourceIPs).
	if ip, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		header["X-Forwarded-For"] = []string{strings.Join(append(slices.Clone(header["X-Forwarded-For"]), ip), ", ")}
	}
	// Without these headers, a transport adds its own name. It also asks for compression, and then
	// decompresses the answer.
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = noValue
	}
	if _, ok := header["Accept-Encoding"]; !ok {
		header["Accept-Encoding"] = identityValue
	}
	return header, nil
}

// These header values are shared by many requests. They must not be changed in place.
var hopValue, trailersValue, noValue, identityValue = []string{"true"}, []string{"trailers"}, []string{""}, []string{"identity"}

// connectionOptions returns the canonical names of the headers that the Connection header lists:
// these headers must not be passed on. It refuses a list that has Impersonate- headers. If they
// were removed, a request of a proxy that impersonates its users would have the rights of the proxy
// itself (RFC 9110, 7.6.1, forbids to list such headers).
func connectionOptions(h http.Header, obey bool) ([]string, error) {
	var listed []string
	for option := range wire.Tokens(h["Connection"]) {
		name := http.CanonicalHeaderKey(option)
		if !obey && strings.HasPrefix(name, "Impersonate-") {
			return nil, apierrors.NewBadRequest("the Connection header must not name " + name)
		}
		listed = append(listed, name)
	}
	return listed, nil
}

// hopByHop reports whether a canonical header is for one connection only (RFC 2616, 13.5.1).
func hopByHop(canonical string) bool {
	switch canonical {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
