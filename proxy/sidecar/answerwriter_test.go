package sidecar

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"
)

// hijackable records every status that is sent, and lets a handler hijack the connection if it has
// one.
type hijackable struct {
	header  http.Header
	sent    []int
	flushed int
	conn    net.Conn
}

func (h *hijackable) Header() http.Header         { return h.header }
func (h *hijackable) WriteHeader(code int)        { h.sent = append(h.sent, code) }
func (h *hijackable) Write(p []byte) (int, error) { return len(p), nil }
func (h *hijackable) Flush()                      { h.flushed++ }

func (h *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h.conn == nil {
		return nil, nil, errors.New("no connection")
	}
	return h.conn, nil, nil
}

// The access log has the final status, and the answer has an audit ID and Cache-Control, in
// whatever order a handler writes.
func TestStatusOfAnAnswer(t *testing.T) {
	type w = http.ResponseWriter
	hijack := func(w w) { _, _, _ = http.NewResponseController(w).Hijack() }
	text := func(w w) { _, _ = w.Write([]byte("x")) }
	status := func(codes ...int) func(w) {
		return func(w w) {
			for _, code := range codes {
				w.WriteHeader(code)
			}
		}
	}
	const ours, none = cacheControl, ""
	for name, c := range map[string]struct {
		handle  func(w)
		conn    bool
		said    http.Header // before
		status  int
		sent    []int
		cache   string
		audit   string
		refused int
	}{
		"nothing":                  {func(w) {}, false, nil, 200, nil, none, none, 0},
		"a status":                 {status(204), false, nil, 204, []int{204}, ours, "id", 0},
		"the first final one":      {status(404, 200), false, nil, 404, []int{404, 200}, ours, "id", 0},
		"early ones do not count":  {status(100, 103, 199, 201), false, nil, 201, []int{100, 103, 199, 201}, ours, "id", 0},
		"only an early one":        {status(103), false, nil, 200, []int{103}, none, none, 0},
		"a switch of protocols":    {status(101), false, nil, 101, []int{101}, none, "id", 0},
		"a body":                   {text, false, nil, 200, []int{200}, ours, "id", 0},
		"two parts of a body":      {func(w w) { text(w); text(w) }, false, nil, 200, []int{200}, ours, "id", 0},
		"a body after a status":    {func(w w) { w.WriteHeader(500); text(w) }, false, nil, 500, []int{500}, ours, "id", 0},
		"flushed":                  {func(w w) { w.(http.Flusher).Flush() }, false, nil, 200, []int{200}, ours, "id", 0},
		"flushed after a status":   {func(w w) { w.WriteHeader(202); w.(http.Flusher).Flush() }, false, nil, 202, []int{202}, ours, "id", 0},
		"hijacked":                 {hijack, true, nil, 101, nil, none, none, 0},
		"hijacked after a status":  {func(w w) { w.WriteHeader(200); hijack(w) }, true, nil, 200, []int{200}, ours, "id", 0},
		"not hijacked":             {hijack, false, nil, 200, nil, none, none, 0},
		"its own audit ID":         {status(200), false, http.Header{"Audit-Id": {"theirs"}}, 200, []int{200}, ours, "theirs", 0},
		"its own Cache-Control":    {status(200), false, http.Header{"Cache-Control": {"public"}}, 200, []int{200}, "public", "id", 0},
		"an empty Cache-Control":   {status(200), false, http.Header{"Cache-Control": {""}}, 200, []int{200}, "", "id", 0},
		"refused":                  {status(401), false, nil, 401, []int{401}, ours, "id", 1},
		"refused, in two calls":    {status(401, 401), false, nil, 401, []int{401, 401}, ours, "id", 1},
		"refused after it began":   {status(200, 401), false, nil, 200, []int{200, 401}, ours, "id", 0},
		"forbidden is not refused": {status(403), false, nil, 403, []int{403}, ours, "id", 0},
	} {
		below := &hijackable{header: http.Header{}}
		if c.said != nil {
			below.header = c.said.Clone()
		}
		if c.conn {
			below.conn = &net.TCPConn{}
		}
		var log written
		refused := 0
		a := &access{server: "apiserver-a", log: &accessLog{out: &log}, observer: newAccessObserver(), next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := w.(*answerWriter)
			tell := answer.refused
			answer.refused = func() { refused++; tell() }
			c.handle(w)
		})}
		r := httptest.NewRequest(http.MethodGet, common, nil)
		r.Header.Set(auditinternal.HeaderAuditID, "id")
		a.ServeHTTP(below, r)
		var record AccessRecord
		if err := json.Unmarshal([]byte(log.String()), &record); err != nil {
			t.Fatal(err)
		}
		if record.Status != c.status || !slices.Equal(below.sent, c.sent) || refused != c.refused {
			t.Errorf("%s: logged %d, sent %v, refused %d times; want %d, %v, %d", name, record.Status, below.sent, refused, c.status, c.sent, c.refused)
		}
		if cache, id := below.header.Get("Cache-Control"), below.header.Get("Audit-Id"); cache != c.cache || id != c.audit {
			t.Errorf("%s: Cache-Control %q, audit ID %q; want %q, %q", name, cache, id, c.cache, c.audit)
		}
		if strings.HasPrefix(name, "flushed") != (below.flushed == 1) {
			t.Errorf("%s: flushed %d times", name, below.flushed)
		}
	}
}

type written struct{ strings.Builder }

func (*written) Close() error { return nil }

// A 401 of the local server ends the client's HTTP/2 connection, unless a peer holds it, or the
// server has accepted the token lately.
func TestWhichRefusalsEndTheConnection(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice"}
	for name, c := range map[string]struct {
		caller   *caller
		major    int
		fromPeer bool
		status   int
		want     string
	}{
		"a token":              {&caller{}, 2, false, 401, "close"},
		"by HTTP/1.1":          {&caller{}, 1, false, 401, ""},
		"from a peer":          {&caller{}, 2, true, 401, ""},
		"an accepted token":    {&caller{trusted: true}, 2, false, 401, ""},
		"a certificate":        {&caller{asserted: alice}, 2, false, 401, ""},
		"not authenticated":    {nil, 2, false, 401, ""}, // the authentication has done so
		"a token, forbidden":   {&caller{}, 2, false, 403, ""},
		"a token, served":      {&caller{}, 2, false, 200, ""},
		"a token, unavailable": {&caller{}, 2, false, 503, ""},
	} {
		a := &access{observer: newAccessObserver(), next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request := accessedFrom(r.Context())
			request.caller, request.FromPeer = c.caller, c.fromPeer
			w.WriteHeader(c.status)
		})}
		r := httptest.NewRequest(http.MethodGet, common, nil)
		r.ProtoMajor = c.major
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
		if got := w.Header().Get("Connection"); got != c.want {
			t.Errorf("%s: Connection %q, want %q", name, got, c.want)
		}
	}
}
