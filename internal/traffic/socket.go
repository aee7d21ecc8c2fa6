package traffic

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/skewproof/skewproof/internal/connections"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// socket sends one identity's requests for upgraded connections to one server.
type socket struct {
	url    *url.URL // wss://host:port
	origin string
	// credentials are the headers that name the user.
	credentials http.Header
	dialer      websocket.Dialer
	plain       http.RoundTripper // HTTP/1.1, with a new connection for each request
	record      *recordingTransport
}

func newSocket(config *rest.Config, conns *connections.Set, record *recordingTransport) (*socket, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	if tls != nil {
		tls = tls.Clone()
		tls.NextProtos = []string{"http/1.1"}
	}
	to := *u
	to.Scheme = "wss"
	return &socket{
		url: &to, origin: u.String(), credentials: credentials(config), record: record,
		plain:  &http.Transport{DialContext: conns.Dialer(asClientGo()), TLSClientConfig: tls, DisableKeepAlives: true, DisableCompression: true},
		dialer: websocket.Dialer{NetDialContext: conns.Dialer(asClientGo()), TLSClientConfig: tls, HandshakeTimeout: workload.Timeout},
	}, nil
}

// credentials returns the headers by which client-go names the user: a bearer token, and the user
// who is impersonated. A client certificate is not among them.
func credentials(config *rest.Config) http.Header {
	header := http.Header{}
	if config.BearerToken != "" {
		header.Set("Authorization", "Bearer "+config.BearerToken)
	}
	if as := config.Impersonate; as.UserName != "" {
		header.Set(transport.ImpersonateUserHeader, as.UserName)
		if as.UID != "" {
			header.Set(transport.ImpersonateUIDHeader, as.UID)
		}
		header[transport.ImpersonateGroupHeader] = as.Groups
		for key, values := range as.Extra {
			header[http.CanonicalHeaderKey(transport.ImpersonateUserExtraHeaderPrefix+url.PathEscape(key))] = values
		}
	}
	return header
}

// ask requests an upgraded connection and counts its messages until the server ends it. A watch may
// end after its requested duration; an earlier end is a failure.
func (s *socket) ask(ctx context.Context, r *workload.Request) {
	u := r.URL()
	u.Scheme, u.Host = s.url.Scheme, s.url.Host
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return
	}
	t := s.record
	op := t.begin(req)
	answered, held, err := t.admit(&op, ctx)
	if err != nil {
		return
	}
	// golang.org/x/net/websocket, with which kube-apiserver serves watches, requires an Origin.
	header := s.credentials.Clone()
	header[auditIDHeader], header["Origin"] = []string{op.ID}, []string{s.origin}
	conn, resp, err := s.dialer.DialContext(ctx, u.String(), header)
	if resp == nil {
		answered(err)
		_ = t.failed(&op, ctx, held, err)
		return
	}
	answered(nil)
	op.Status, op.RetryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	if err != nil { // the answer is not an upgrade
		s.refused(&op, resp)
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	since := t.recorder.Now()
	op.Body = history.BodyEvents
	for err = nil; err == nil; {
		if _, _, err = conn.ReadMessage(); err == nil {
			op.Events++
		}
	}
	op.End = t.recorder.Now()
	if op.End-since < r.For && !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		op.Failure, op.Error = classifyFailure(ctx, err), err.Error()
		// There was no close message, or one that reports an error.
		if op.Failure == history.FailureOther && websocket.IsUnexpectedCloseError(err) {
			op.Failure = history.FailureReset
		}
	}
	t.recorder.Operation(op)
}

// askPlain requests an upgrade to a protocol other than WebSocket. It does not speak the protocol.
// It records the answer, and the events of a watch if the server ignores the request for an
// upgrade.
func (s *socket) askPlain(ctx context.Context, r *workload.Request) {
	u := r.URL()
	u.Scheme, u.Host = "https", s.url.Host
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return
	}
	t := s.record
	op := t.begin(req)
	answered, held, err := t.admit(&op, ctx)
	if err != nil {
		return
	}
	req.Header = s.credentials.Clone()
	req.Header[auditIDHeader], req.Header["Connection"], req.Header["Upgrade"] = []string{op.ID}, []string{"Upgrade"}, []string{r.Protocol}
	resp, err := s.plain.RoundTrip(req)
	answered(err)
	if err != nil {
		_ = t.failed(&op, ctx, held, err)
		return
	}
	op.Status, op.RetryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		_ = resp.Body.Close()
		op.End = t.recorder.Now()
		t.recorder.Operation(op)
	case resp.StatusCode == http.StatusOK && r.Verb == "watch":
		s.follow(ctx, &op, resp, r.For)
	default:
		s.refused(&op, resp)
	}
}

// follow counts the events of a watch, one a line, until the server ends it.
func (s *socket) follow(ctx context.Context, op *history.Operation, resp *http.Response, lasts time.Duration) {
	defer func() { _ = resp.Body.Close() }()
	since := s.record.recorder.Now()
	op.Body = history.BodyEvents
	lines := bufio.NewReader(resp.Body)
	for {
		_, err := lines.ReadSlice('\n')
		switch {
		case err == nil:
			op.Events++
			continue
		case errors.Is(err, bufio.ErrBufferFull): // this is a part of a long line
			continue
		}
		op.End = s.record.recorder.Now()
		if !errors.Is(err, io.EOF) && op.End-since < lasts {
			op.Failure, op.Error = classifyFailure(ctx, err), err.Error()
		}
		s.record.recorder.Operation(*op)
		return
	}
}

// mostRefused is how much of an answer that is not an upgrade is read, in bytes. gorilla/websocket
// keeps a kilobyte.
const mostRefused = 1 << 20

// refused records an answer that is not an upgrade.
func (s *socket) refused(op *history.Operation, resp *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, mostRefused))
	_ = resp.Body.Close()
	op.End = s.record.recorder.Now()
	s.record.readBody(op, resp.Header.Get("Content-Type"), body)
	s.record.recorder.Operation(*op)
}
