package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// world is the environment of both implementations: the resources that are built into the local
// server, and peers. It has no network.
type world struct {
	mu    sync.Mutex
	local [2]discovery.Groups
	peers map[string]*worldPeer // by address
	slow  time.Duration         // how long each document of a peer takes
	lag   time.Duration         // how long every other answer of a peer takes
}

type worldPeer struct {
	id      string
	version string // the version at /version; "": there is no /version
	serves  [2]discovery.Groups
	down    [2]failure // how fetches of each document fail; nil: they do not fail
	cut     bool       // nothing gets through
	manner  manner     // how the peer answers everything except fetches; nil: answers
}

// failure is how a fetch of a document fails.
type failure func(r *http.Request) *http.Response

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

var roots = []string{"/api", "/apis"}

// RoundTrip is the transport to every peer. It adds the request that the peer got to the exchange
// of the request.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil { // as net/http does
		trace.GotConn(httptrace.GotConnInfo{})
	}
	answer, takes, err := w.reply(r)
	if err != nil {
		return nil, err
	}
	got, err := receive(r)
	if err != nil {
		return nil, err
	}
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		x.note(got)
	}
	if takes > 0 {
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return answer()
}

var errRefused = errors.New("connect: connection refused")

// reply returns how the peer will answer, and how long that takes.
func (w *world) reply(r *http.Request) (answer func() (*http.Response, error), takes time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.peers[r.URL.Host]
	if !ok || p.cut {
		return nil, 0, errRefused
	}
	if r.URL.Path == "/version" {
		version := p.version
		return func() (*http.Response, error) {
			if version == "" {
				return reply(r, http.StatusNotFound, "text/plain", "404 page not found"), nil
			}
			return reply(r, http.StatusOK, "application/json", `{"gitVersion":"`+version+`"}`), nil
		}, 0, nil
	}
	if root := slices.Index(roots, r.URL.Path); root >= 0 {
		fail, served := p.down[root], p.serves[root]
		return func() (*http.Response, error) {
			if fail != nil {
				return fail(r), nil
			}
			return document(r, served), nil
		}, w.slow, nil
	}
	how := p.manner
	if how == nil {
		how = answers
	}
	return func() (*http.Response, error) { return how(p, r) }, w.lag, nil
}

// failures are ways in which fetches fail, or should fail. Upstream accepts only an aggregated
// document of v2, or an empty body. Servers before 1.26 answer every client with a list of groups.
var failures = []failure{
	func(r *http.Request) *http.Response {
		return reply(r, http.StatusInternalServerError, "text/plain", "down")
	},
	func(r *http.Request) *http.Response {
		return reply(r, http.StatusForbidden, "application/json", `{"kind":"Status"}`)
	},
	func(r *http.Request) *http.Response {
		return reply(r, http.StatusOK, "application/json", `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	},
	broken(func(whole int64) int64 { return whole / 2 }),
	broken(func(int64) int64 { return 1 }),
	broken(func(int64) int64 { return 0 }),
	broken(func(whole int64) int64 { return whole }),
	func(r *http.Request) *http.Response { return reply(r, http.StatusOK, "application/json", "") },
}

// broken is a document that breaks off after a number of bytes, which depends on its length.
func broken(after func(whole int64) int64) failure {
	return func(r *http.Request) *http.Response {
		whole := document(r, documentOf(pool, false)[slices.Index(roots, r.URL.Path)])
		whole.Body = &breakingBody{from: whole.Body, after: after(whole.ContentLength)}
		return whole
	}
}

func document(r *http.Request, groups discovery.Groups) *http.Response {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: groups}
	var body bytes.Buffer
	if err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}).Encode(list, &body); err != nil {
		return reply(r, http.StatusInternalServerError, "text/plain", err.Error())
	}
	return reply(r, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body.String())
}

// manner is how a peer answers requests that are not fetches.
type manner func(p *worldPeer, r *http.Request) (*http.Response, error)

// answers is the usual manner.
func answers(p *worldPeer, r *http.Request) (*http.Response, error) {
	return reply(r, http.StatusOK, "text/plain", "peer "+p.id), nil
}

// manners are the other manners: errors of all kinds, answers in other forms, and answers that
// break off before their headers or in the middle.
var manners = []manner{
	says(http.StatusCreated, "application/json", `{"kind":"Made"}`, "Warning", `299 - "one"`, "Warning", `299 - "two"`, "Keep-Alive", "timeout=5", "Connection", "X-Own", "X-Own", "1"),
	says(http.StatusCreated, "application/json", `{"kind":"Made"}`, "Location", "/api/v1/made"),
	says(http.StatusNotFound, "application/json", `{"kind":"Status","code":404}`),
	says(http.StatusConflict, "application/vnd.kubernetes.protobuf", "k8s\x00"),
	says(http.StatusTooManyRequests, "application/json", `{"kind":"Status","code":429}`, "Retry-After", "1"),
	says(http.StatusInternalServerError, "text/plain", "panic"),
	says(http.StatusServiceUnavailable, "application/json", `{"kind":"Status","code":503}`, "Retry-After", "5"),
	says(http.StatusTemporaryRedirect, "", "", "Location", "/elsewhere?x=1"),
	says(http.StatusFound, "", "", "Location", "https://example.com/elsewhere"),
	says(http.StatusOK, "text/html; charset=utf-8", `<a href="/api/v1">here</a>`),
	says(http.StatusOK, "", ""),
	func(*worldPeer, *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
	func(p *worldPeer, r *http.Request) (*http.Response, error) {
		broken, _ := answers(p, r)
		broken.Body = &breakingBody{from: broken.Body, after: broken.ContentLength / 2}
		return broken, nil
	},
	func(p *worldPeer, r *http.Request) (*http.Response, error) {
		chunked, _ := answers(p, r)
		chunked.ContentLength, chunked.Trailer = -1, http.Header{"X-Sum": {"7"}}
		chunked.Header.Del("Content-Length")
		return chunked, nil
	},
	func(p *worldPeer, r *http.Request) (*http.Response, error) {
		chunked, _ := answers(p, r)
		chunked.ContentLength = -1
		chunked.Header.Del("Content-Length")
		chunked.Body = &breakingBody{from: chunked.Body, after: 3}
		return chunked, nil
	},
}

func says(code int, contentType, body string, header ...string) manner {
	return func(_ *worldPeer, r *http.Request) (*http.Response, error) {
		said := reply(r, code, contentType, body)
		for i := 0; i < len(header); i += 2 {
			said.Header.Add(header[i], header[i+1])
		}
		return said, nil
	}
}

// reply has the headers that the filters of every kube-apiserver set.
func reply(r *http.Request, code int, contentType, body string) *http.Response {
	header := http.Header{"Content-Length": {strconv.Itoa(len(body))}, "Cache-Control": {"no-cache, private"}}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if id := r.Header.Get("Audit-Id"); id != "" {
		header.Set("Audit-Id", id)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// breakingBody breaks off after a number of bytes.
type breakingBody struct {
	from  io.ReadCloser
	after int64
}

// errBroken contains words that make upstream keep it out of its log (apimachinery, util/proxy,
// noSuppressPanicError).
var errBroken = errors.New("unexpected EOF (suppressing panic)")

func (b *breakingBody) Read(p []byte) (int, error) {
	if b.after <= 0 {
		return 0, errBroken
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.after)])
	b.after -= int64(n)
	return n, err
}

func (b *breakingBody) Close() error { return b.from.Close() }

// way is one implementation's transport to the peers. It counts the fetches, with the identity that
// they have.
type way struct {
	*world
	mu      sync.Mutex
	fetches map[string]int
}

func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.Contains(roots, r.URL.Path) {
		what := r.URL.Host + " " + r.URL.Path
		for _, name := range []string{"Accept", proxy.HopHeader, "X-Remote-User", "X-Remote-Uid", "X-Remote-Group"} {
			what += " | " + strings.Join(r.Header[name], ", ")
		}
		w.mu.Lock()
		w.fetches[what]++
		w.mu.Unlock()
		time.Sleep(tick) // if rounds failed at the very same instant, they would be repeated in any order
	}
	return w.world.RoundTrip(r)
}

func (w *way) fetched() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.fetches)
}
