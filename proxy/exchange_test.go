package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// exchange is one request's way through an implementation: the answer that the client got, and the
// requests that the servers got.
type exchange struct {
	code            int
	header, trailer http.Header
	body            string
	aborted         bool // broken off by [http.ErrAbortHandler]

	mu    sync.Mutex
	there []received
}

// exchangeKey is the key of a request's exchange in its context.
type exchangeKey struct{}

// received is a request as a server gets it.
type received struct {
	by                string // the host that it was sent to; "" for the local server
	method, uri, host string
	header, trailer   http.Header
	length            int64
	body              string
}

// receive reads a request. It returns the error of reading the body.
func receive(r *http.Request) (received, error) {
	got := received{by: r.URL.Host, method: r.Method, uri: r.URL.RequestURI(), host: r.Host, header: r.Header.Clone(), trailer: r.Trailer.Clone(), length: r.ContentLength}
	if got.host == "" {
		got.host = r.URL.Host
	}
	if r.Body == nil {
		return got, nil
	}
	body, err := io.ReadAll(r.Body)
	got.body = string(body)
	return got, err
}

func (x *exchange) note(got received) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.there = append(x.there, got)
}

// clone is a copy that may be changed.
func (x *exchange) clone() *exchange {
	c := &exchange{code: x.code, header: x.header.Clone(), trailer: x.trailer.Clone(), body: x.body, aborted: x.aborted, there: slices.Clone(x.there)}
	for i := range c.there {
		c.there[i].header, c.there[i].trailer = c.there[i].header.Clone(), c.there[i].trailer.Clone()
	}
	return c
}

// equal reports whether the client and the servers saw the same in both exchanges.
func (x *exchange) equal(y *exchange) bool {
	return x.code == y.code && x.body == y.body && x.aborted == y.aborted && equalHeaders(x.header, y.header) && equalHeaders(x.trailer, y.trailer) &&
		slices.EqualFunc(x.there, y.there, func(a, b received) bool {
			return a.by == b.by && a.method == b.method && a.uri == b.uri && a.host == b.host && a.length == b.length && a.body == b.body &&
				equalHeaders(a.header, b.header) && equalHeaders(a.trailer, b.trailer)
		})
}

func equalHeaders(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }

func (x *exchange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q", x.code, x.body)
	if x.aborted {
		b.WriteString(" broken off")
	}
	write(&b, "\n    ", x.header)
	write(&b, "\n    trailer ", x.trailer)
	for _, r := range x.there {
		fmt.Fprintf(&b, "\n  at %q: %s %s of %s, %d bytes %q", r.by, r.method, r.uri, r.host, r.length, r.body)
		write(&b, "\n    ", r.header)
		write(&b, "\n    trailer ", r.trailer)
	}
	return b.String()
}

func write(b *strings.Builder, before string, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(b, "%s%s: %q", before, name, h[name])
	}
}
