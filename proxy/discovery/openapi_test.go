package discovery

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenAPIRoundTrip(t *testing.T) {
	for version, body := range recordedFiles(t, "openapi") {
		index, err := DecodeOpenAPI(body)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		d, err := NewOpenAPIDocument(index)
		if err != nil {
			t.Fatal(err)
		}
		w := get(d.ServeHTTP, "text/plain")
		if diff := cmp.Diff(string(body), w.Body.String()); diff != "" {
			t.Errorf("%s (-server +ours):\n%s", version, diff)
		}
		if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("ETag") != d.ETag() || w.Code != http.StatusOK {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		if again := get(d.ServeHTTP, "", "If-None-Match", d.ETag()); again.Code != http.StatusNotModified {
			t.Errorf("If-None-Match: %d", again.Code)
		}
		if packed := get(d.ServeHTTP, "", "Accept-Encoding", "gzip"); packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= w.Body.Len() {
			t.Errorf("%d bytes, as gzip %d: %v", w.Body.Len(), packed.Body.Len(), packed.Header())
		}
	}
}

func TestDecodeOpenAPI(t *testing.T) {
	for body, want := range map[string]string{
		``:                             "decode OpenAPI index",
		`[]`:                           "decode OpenAPI index",
		`{"kind":"Status","code":403}`: "no paths",
		`{"paths":{"a":{"serverRelativeURL":1}}}`:          "decode OpenAPI index",
		`{"paths":{}` + strings.Repeat(" ", MaxBody) + `}`: "more than",
	} {
		if _, err := DecodeOpenAPI([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", body, err, want)
		}
	}
	good := []string{"/openapi/v3/apis/apps/v1?hash=AB", "/openapi/v3/.well-known/openid-configuration?hash=1", "/openapi/v3/version"}
	bad := []string{
		"", "/", "/openapi/v2", "openapi/v3/api", "//evil.example/openapi/v3/api", "http://evil.example/openapi/v3/api", "/openapi/v3/../../api/v1/secrets",
		`/openapi/v3/..\x`, "/openapi/v3/%2e%2e/x", "/openapi/v3/api ?hash=1", "/openapi/v3/a\r\nb", "/openapi/v3/#x",
	}
	index := OpenAPIIndex{}
	for _, u := range append(slices.Clone(good), bad...) {
		index[u] = u
	}
	d, err := NewOpenAPIDocument(index)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeOpenAPI(d.representation.body)
	if err != nil {
		t.Fatal(err)
	}
	if kept := slices.Sorted(maps.Keys(got)); !slices.Equal(kept, slices.Sorted(slices.Values(good))) {
		t.Errorf("kept %q", kept)
	}
}

func FuzzOpenAPI(f *testing.F) {
	f.Add([]byte(`{"paths":{"api":{"serverRelativeURL":"/openapi/v3/api?hash=1"},"x":null}}`))
	for _, body := range recordedFiles(f, "openapi") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		index, err := DecodeOpenAPI(body)
		if err != nil {
			return
		}
		for path, u := range index {
			if !strings.HasPrefix(u, "/openapi/v3/") {
				t.Fatalf("%q leads to %q", path, u)
			}
		}
		d, err := NewOpenAPIDocument(index)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeOpenAPI(d.representation.body); err != nil || !maps.Equal(again, index) {
			t.Fatalf("%v: encoded and decoded %v, %v", index, again, err)
		}
	})
}

// ETag returns the quoted entity tag of the index: the hash of its bytes, as in a kube-apiserver.
func (d *OpenAPIDocument) ETag() string { return d.representation.etag }
