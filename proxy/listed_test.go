package proxy_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

// listed is a difference from upstream that no switch covers: docs/policies.md lists it. allow
// removes this difference between two exchanges, and no other difference.
type listed struct {
	what  string
	allow func(q *request, theirs, ours *exchange)
}

// differences are all differences that the comparison allows.
var differences = []listed{
	{"X-Forwarded-Host, -Proto and -Uri are not added on the hop", onTheHop(func(_ *request, theirs, ours *received) {
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Uri"} {
			theirs.header.Del(name)
			ours.header.Del(name)
		}
	})},
	{"Accept-Encoding is explicit", onTheHop(func(_ *request, theirs, ours *received) {
		if theirs.header["Accept-Encoding"] == nil && slices.Equal(ours.header["Accept-Encoding"], []string{"identity"}) {
			ours.header.Del("Accept-Encoding")
		}
	})},
	{"the trailer of a request is dropped", onTheHop(func(q *request, theirs, _ *received) {
		if q.trailer {
			theirs.trailer = nil
		}
	})},
	{"no header that begins with X-Remote- is a client's to set", onTheHop(func(_ *request, theirs, _ *received) {
		theirs.header.Del("X-Remote-Control")
	})},
	{"a Connection header does not take the Audit-ID away", onTheHop(func(q *request, theirs, ours *received) {
		if q.header.Get("Connection") == "Audit-Id" {
			theirs.header["Audit-Id"] = ours.header["Audit-Id"]
		}
	})},
	{"a header that a filter here has set does not appear twice", func(_ *request, theirs, _ *exchange) {
		for _, name := range []string{"Audit-Id", "Cache-Control"} {
			if v := theirs.header[name]; len(v) == 2 && v[0] == v[1] {
				theirs.header[name] = v[:1]
			}
		}
	}},
	{"HTML is not rewritten", func(_ *request, theirs, ours *exchange) {
		if strings.HasPrefix(ours.header.Get("Content-Type"), "text/html") && theirs.code == ours.code {
			theirs.body = ours.body
			theirs.header["Content-Length"] = ours.header["Content-Length"]
		}
	}},
	{"Location is not rewritten", func(_ *request, theirs, ours *exchange) {
		if to := ours.header.Get("Location"); strings.HasPrefix(to, "/") && len(theirs.there) == 1 && theirs.header.Get("Location") == "https://"+theirs.there[0].by+to {
			theirs.header.Set("Location", to)
		}
	}},
	{"an identity that headers cannot carry is 403", func(q *request, theirs, ours *exchange) {
		if q.user == unfit && ours.code == http.StatusForbidden && len(ours.there) == 0 && theirs.body != "local" {
			theirs.become(ours)
		}
	}},
	{"a request without a user is 500", func(q *request, theirs, ours *exchange) {
		if q.user == nil && ours.code == http.StatusInternalServerError && len(ours.there)+len(theirs.there) == 0 && theirs.code == http.StatusOK && theirs.body == "" {
			theirs.become(ours)
		}
	}},
	{"a client that breaks off is 400, one whose time is over 504", func(q *request, theirs, ours *exchange) {
		if (q.breaksOff && ours.code == http.StatusBadRequest || q.limit > 0 && ours.code == http.StatusGatewayTimeout) && theirs.code == http.StatusServiceUnavailable {
			theirs.become(ours)
		}
	}},
	{"CONNECT asks for no resource", func(q *request, theirs, ours *exchange) {
		if q.method == http.MethodConnect && ours.body == "local" && theirs.body != "local" {
			theirs.become(ours)
		}
	}},
	{"merged discovery is for GET and HEAD", func(q *request, theirs, ours *exchange) {
		if q.method != http.MethodGet && q.method != http.MethodHead && len(theirs.there)+len(ours.there) == 0 && theirs.header.Get("Etag") != "" {
			theirs.become(ours)
		}
	}},
	{"merged discovery varies by Accept-Encoding, is compressed from 4 KiB on, and has its length", ofDiscovery(func(q *request, _, ours *exchange) {
		ours.header["Vary"] = []string{"Accept"}
		if ours.header.Get("Content-Encoding") == "gzip" && strings.Contains(q.header.Get("Accept-Encoding"), "gzip") {
			ours.body = unzipped(ours.body)
			ours.header.Del("Content-Encoding")
			ours.header.Set("Etag", strings.TrimSuffix(ours.header.Get("Etag"), `-gzip"`)+`"`)
		}
		ours.header.Del("Content-Length")
	})},
	{"merged discovery has an entity tag for each encoding", ofDiscovery(func(q *request, theirs, ours *exchange) {
		if kind, _, _ := strings.Cut(ours.header.Get("Content-Type"), ";"); kind == "application/json" && !pretty(q) {
			return
		}
		theirs.header["Etag"] = ours.header["Etag"]
		if theirs.code == http.StatusNotModified && ours.code == http.StatusOK {
			theirs.become(ours)
		}
	})},
	{"If-None-Match may be a list, weak or any", ofDiscovery(func(q *request, theirs, ours *exchange) {
		asked, tag := q.header.Get("If-None-Match"), ours.header.Get("Etag")
		if ours.code == http.StatusNotModified && asked != tag && (asked == "*" || strings.Contains(asked, tag)) {
			theirs.become(ours)
		}
	})},
}

// onTheHop applies allow to exchanges in which both requests went to the same peer.
func onTheHop(allow func(q *request, theirs, ours *received)) func(q *request, theirs, ours *exchange) {
	return func(q *request, theirs, ours *exchange) {
		if len(theirs.there) == 1 && len(ours.there) == 1 && theirs.there[0].by != "" && theirs.there[0].by == ours.there[0].by {
			allow(q, &theirs.there[0], &ours.there[0])
		}
	}
}

// ofDiscovery applies allow to exchanges in which both implementations answered with a merged
// document, or with 304 for one.
func ofDiscovery(allow func(q *request, theirs, ours *exchange)) func(q *request, theirs, ours *exchange) {
	return func(q *request, theirs, ours *exchange) {
		if len(theirs.there)+len(ours.there) == 0 && theirs.header.Get("Etag") != "" && ours.header.Get("Etag") != "" {
			allow(q, theirs, ours)
		}
	}
}

// become makes an exchange equal to another.
func (x *exchange) become(y *exchange) {
	x.code, x.header, x.trailer, x.body, x.aborted, x.there = y.code, y.header, y.trailer, y.body, y.aborted, y.there
}

// pretty reports whether JSON is indented for the request (k8s.io/apiserver,
// endpoints/handlers/negotiation, isPrettyPrint).
func pretty(q *request) bool {
	return strings.Contains(q.target, "pretty=") || strings.Contains(q.header.Get("Accept"), "pretty=") || strings.HasPrefix(q.header.Get("User-Agent"), "curl")
}

func unzipped(body string) string {
	r, err := gzip.NewReader(bytes.NewReader([]byte(body)))
	if err != nil {
		return body
	}
	plain, _ := io.ReadAll(r)
	return string(plain)
}

// TestListedDifferencesAreThere allows all listed differences except one. If the comparison then
// sees no difference, that one need not be listed.
func TestListedDifferencesAreThere(t *testing.T) {
	for i, l := range differences {
		t.Run(l.what, func(t *testing.T) { seen(t, proxy.Upstream137(), slices.Delete(slices.Clone(differences), i, i+1)) })
	}
}
