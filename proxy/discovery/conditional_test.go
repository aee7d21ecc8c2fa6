package discovery

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestIfNoneMatch(t *testing.T) {
	const current = `"A,B"`
	for _, c := range []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{``}, false},
		{[]string{`"A,B"`}, true},
		{[]string{`W/"A,B"`}, true},
		{[]string{`*`}, true},
		{[]string{` * `}, true},
		{[]string{`"x", "A,B"`}, true},
		{[]string{`"x" ,W/"y",,	W/"A,B"`}, true},
		{[]string{`"x"`, `"A,B"`}, true},
		{[]string{`"A`, `"A,B"`}, true},
		{[]string{`"x"`}, false},
		{[]string{`"A","B"`}, false},
		{[]string{`A,B`}, false},
		{[]string{`"a,b"`}, false},
		{[]string{`w/"A,B"`}, false},
		{[]string{`"A,B`}, false},
		{[]string{`"x""A,B"`}, false},
		{[]string{`"x" "A,B"`}, false},
		{[]string{`"x*"`}, false},
		{[]string{`W/ "A,B"`}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["If-None-Match"] = c.values
		if got := notModified(r, current); got != c.want {
			t.Errorf("If-None-Match %q: %v", c.values, got)
		}
	}
}

func TestAcceptEncoding(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP;q=0.5"}, true},
		{[]string{"deflate, gzip ;q=1.0"}, true},
		{[]string{"deflate", "gzip"}, true},
		{[]string{"*"}, true},
		{[]string{"br, *;q=0.1"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"identity"}, false},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip; q = 0.000"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"*;q=0"}, false},
		{[]string{"gzipped"}, false},
		// These are near a weight of 0, and are none.
		{[]string{"gzip;q=0.001"}, true},
		{[]string{"gzip;q=00.1"}, true},
		{[]string{"gzip;q="}, true},
		{[]string{"gzip;q"}, true},
		{[]string{"gzip;"}, true},
		{[]string{"gzip;=0"}, true},
		{[]string{"gzip;x=0"}, true},
		{[]string{"gzip;qq=0"}, true},
		{[]string{"gzip;q=-0"}, true},
		{[]string{"gzip;q=0x"}, true},
		{[]string{"gzip;Q=0."}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Accept-Encoding"] = c.values
		if got := acceptsGzip(r); got != c.want {
			t.Errorf("Accept-Encoding %q: %v", c.values, got)
		}
	}
}

func FuzzConditional(f *testing.F) {
	f.Add(`"a", W/"b"`, "gzip;q=0, *")
	f.Add(`*`, ";;q=,")
	f.Fuzz(func(t *testing.T, ifNoneMatch, acceptEncoding string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["If-None-Match"], r.Header["Accept-Encoding"] = []string{ifNoneMatch}, []string{acceptEncoding}
		if notModified(r, `"tag"`) && !strings.Contains(ifNoneMatch, `"tag"`) && strings.Trim(ifNoneMatch, " \t") != "*" {
			t.Errorf("%q matches", ifNoneMatch)
		}
		if acceptsGzip(r) && !strings.Contains(strings.ToLower(acceptEncoding), "gzip") && !strings.Contains(acceptEncoding, "*") {
			t.Errorf("%q accepts gzip", acceptEncoding)
		}
	})
}
