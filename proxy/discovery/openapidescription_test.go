package discovery

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestOpenAPIDescription(t *testing.T) {
	body := described("local", []string{"/apis/example.com/v1/widgets"}, []string{"Widget"})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := NewOpenAPIDescription("TAG", body)
	for name, c := range map[string]struct {
		accept, hash string
		code         int
		contentType  string
		forever      bool
	}{
		"nothing is asked for":       {"", "", 200, "application/json", false},
		"anything":                   {"*/*", "TAG", 200, "application/json", true},
		"JSON":                       {"application/json", "TAG", 200, "application/json", true},
		"JSON, without a hash":       {"application/json", "", 200, "application/json", false},
		"JSON, with an old hash":     {"application/json", "OLD", 200, "application/json", false},
		"protobuf":                   {"application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "TAG", 200, openAPIProtobuf, true},
		"protobuf, by the old name":  {"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", "OLD", 200, openAPIProtobuf, false},
		"protobuf, or else JSON":     {"application/com.github.proto-openapi.spec.v3@v1.0+protobuf,application/json", "", 200, openAPIProtobuf, false},
		"what nobody has":            {"image/png", "TAG", 406, "application/json", false},
		"protobuf of another format": {"application/vnd.kubernetes.protobuf", "TAG", 406, "application/json", false},
	} {
		t.Run(name, func(t *testing.T) {
			target := "/openapi/v3/apis/example.com/v1"
			if c.hash != "" {
				target += "?hash=" + c.hash
			}
			r, w := httptest.NewRequest("GET", target, nil), httptest.NewRecorder()
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
			if err := d.Serve(w, r, now); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.code || w.Header().Get("Content-Type") != c.contentType {
				t.Fatalf("%d %v, want %d in %s", w.Code, w.Header(), c.code, c.contentType)
			}
			control, expires := "no-cache, private", ""
			if c.forever {
				control, expires = "public, immutable", "Sat, 02 Jan 2027 03:04:05 GMT"
			}
			if w.Header().Get("Cache-Control") != control || w.Header().Get("Expires") != expires {
				t.Errorf("Cache-Control %q, Expires %q; want %q, %q", w.Header().Get("Cache-Control"), w.Header().Get("Expires"), control, expires)
			}
			if !strings.Contains(w.Header().Get("Vary"), "Accept") {
				t.Errorf("Vary is %q", w.Header().Get("Vary"))
			}
			if c.contentType == openAPIProtobuf {
				if got := w.Body.String(); strings.HasPrefix(got, "{") || !strings.Contains(got, "/apis/example.com/v1/widgets") {
					t.Errorf("protobuf is %q", got)
				}
			} else if c.code == 200 && w.Body.String() != string(body) {
				t.Errorf("%s", w.Body)
			}
		})
	}
	t.Run("every encoding has a tag of its own", func(t *testing.T) {
		tags := map[string]bool{}
		for _, accept := range []string{"application/json", openAPIProtobuf} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("Accept", accept)
			if err := d.Serve(w, r, now); err != nil {
				t.Fatal(err)
			}
			tag := w.Header().Get("ETag")
			tags[tag] = true
			r.Header.Set("If-None-Match", tag)
			again := httptest.NewRecorder()
			if err := d.Serve(again, r, now); err != nil || again.Code != 304 {
				t.Errorf("If-None-Match %s: %d, %v", tag, again.Code, err)
			}
		}
		if len(tags) != 2 {
			t.Errorf("tags %v", tags)
		}
	})
	t.Run("a description without protobuf is an error, and nothing is written", func(t *testing.T) {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept", openAPIProtobuf)
		if err := NewOpenAPIDescription("TAG", []byte(`{"openapi":"3.0.0","paths":[3]}`)).Serve(w, r, now); err == nil || w.Body.Len() > 0 {
			t.Errorf("error %v, body %s", err, w.Body)
		}
	})
}
