package traffic

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/connections"
)

// ClientSocket sends requests that ask for the connection to be upgraded to WebSocket (RFC 6455), in HTTP/1.1, each on a connection of its own.
const ClientSocket = "websocket"

// socket is one identity's way to one server for connections that are upgraded.
type socket struct {
	url    *url.URL // wss://host:port
	origin string
	token  string
	dialer websocket.Dialer
	record *recordingTransport
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
		url: &to, origin: u.String(), token: config.BearerToken, record: record,
		dialer: websocket.Dialer{NetDialContext: conns.Dialer(asClientGo()), TLSClientConfig: tls, HandshakeTimeout: DefaultTimeout},
	}, nil
}

// upgraded asks for a connection that is upgraded, and counts the messages that come on it until the server ends it. lasts is how long it is
// to last: an end after that is as it should be.
func upgraded(path string, query map[string]string, lasts time.Duration) action {
	return action{client: ClientSocket, send: func(ctx context.Context, c *client) { c.socket.ask(ctx, path, query, lasts) }}
}

func (s *socket) ask(ctx context.Context, path string, query map[string]string, lasts time.Duration) {
	u := *s.url
	u.Path = path
	values := url.Values{}
	for key, value := range query {
		values.Set(key, value)
	}
	u.RawQuery = values.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return
	}
	t := s.record
	op := describe(req)
	op.ID, op.Server, op.User = uuid.NewString(), t.server, t.user
	answered, held, err := t.admit(&op, ctx)
	if err != nil {
		return
	}
	// golang.org/x/net/websocket, which kube-apiserver serves watches by, refuses a client that does not say where it comes from.
	header := http.Header{auditIDHeader: {op.ID}, "Origin": {s.origin}}
	if s.token != "" {
		header.Set("Authorization", "Bearer "+s.token)
	}
	conn, resp, err := s.dialer.DialContext(ctx, u.String(), header)
	if resp == nil {
		answered(err)
		_ = t.failed(&op, ctx, held, err)
		return
	}
	answered(nil)
	op.Status, op.RetryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	if err != nil { // an answer other than the upgrade
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
	if op.End-since < lasts && !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		op.Failure, op.Error = classifyFailure(ctx, err), err.Error()
		if op.Failure == history.FailureOther && websocket.IsUnexpectedCloseError(err) { // without a word, or with one of trouble
			op.Failure = history.FailureReset
		}
	}
	t.recorder.Operation(op)
}

// refused records an answer that is no upgrade. gorilla/websocket keeps the first kilobyte of its body, which a Status fits in.
func (s *socket) refused(op *history.Operation, resp *http.Response) {
	body := make([]byte, 0, 1024)
	buffer := make([]byte, 1024)
	for {
		n, err := resp.Body.Read(buffer)
		body = append(body, buffer[:n]...)
		if err != nil {
			break
		}
	}
	_ = resp.Body.Close()
	op.End = s.record.recorder.Now()
	s.record.readBody(op, resp.Header.Get("Content-Type"), body)
	s.record.recorder.Operation(*op)
}

// PodConnections are the subresources by which a client gets a connection to what runs in a pod. The pod does not exist: what is learned is whether
// a request that asks for an upgrade is answered as any other.
var PodConnections = []string{"exec", "attach", "portforward"}

// upgrade asks for a watch by WebSocket (k8s.io/apiserver, endpoints/handlers/watch.go) or, where the probe has none, for a connection to a pod.
func (c *chooser) upgrade(p Probe) (action, bool) {
	r := p.Resource
	if p.Subresource == "" && slices.Contains(r.Verbs, "watch") {
		seconds := 1 + c.random.IntN(5)
		query := map[string]string{"watch": "true", "timeoutSeconds": strconv.Itoa(seconds), "resourceVersion": "0"}
		return upgraded(path(r.GVR, "", "", ""), query, time.Duration(seconds)*time.Second), true
	}
	pods := history.GVR{Version: "v1", Resource: "pods"}
	sub := PodConnections[c.random.IntN(len(PodConnections))]
	query := map[string]string{}
	if sub != "portforward" {
		query = map[string]string{"command": "true", "stdout": "true"}
	}
	return upgraded(path(pods, Namespace, c.absentName(), sub), query, 0), true
}
