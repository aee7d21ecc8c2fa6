package discovery

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func recordedIndexes(t testing.TB) (sources []OpenAPISource, bodies map[string][]byte) {
	t.Helper()
	bodies = recordedFiles(t, "openapi")
	for version, body := range bodies {
		index, err := DecodeOpenAPI(body)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		sources = append(sources, OpenAPISource{Server: version, Version: version, Index: index})
	}
	return newestFirst(sources, func(s *OpenAPISource) (string, string) { return s.Server, s.Version }), bodies
}

func TestOpenAPIRoundTrip(t *testing.T) {
	sources, bodies := recordedIndexes(t)
	for _, s := range sources {
		d, err := NewOpenAPIDocument(s.Index)
		if err != nil {
			t.Fatal(err)
		}
		w := get(d.ServeHTTP, "text/plain")
		if diff := cmp.Diff(string(bodies[s.Version]), w.Body.String()); diff != "" {
			t.Errorf("%s (-server +ours):\n%s", s.Version, diff)
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

func TestMergeOpenAPI(t *testing.T) {
	sources, _ := recordedIndexes(t)
	merged := MergeOpenAPI(sources)
	for path, u := range merged {
		i := slices.IndexFunc(sources, func(s OpenAPISource) bool { return s.Index[path] != "" })
		if i < 0 || sources[i].Index[path] != u {
			t.Errorf("%s: %s is not what the newest server that has it says", path, u)
		}
	}
	for _, s := range sources {
		for path := range s.Index {
			if merged[path] == "" {
				t.Errorf("%s of %s is lost", path, s.Version)
			}
		}
	}
	permutations(len(sources), func(order []int) {
		permuted := make([]OpenAPISource, len(order))
		for i, from := range order {
			permuted[i] = sources[from]
		}
		if !maps.Equal(MergeOpenAPI(permuted), merged) {
			t.Fatalf("order %v gives something else", order)
		}
	})
	if maps.Equal(merged, sources[0].Index) {
		t.Error("older servers add nothing to the newest: nothing was tested")
	}
	if got := MergeOpenAPI(nil); got == nil || len(got) != 0 {
		t.Errorf("nothing merged is %v", got)
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
	f.Add([]byte(`{"paths":{"api":{"serverRelativeURL":"/openapi/v3/api?hash=1"},"x":null}}`), []byte(`{"paths":{}}`))
	_, bodies := recordedIndexes(f)
	for _, body := range bodies {
		f.Add(body, []byte(`{"paths":{"api":{"serverRelativeURL":"/openapi/v3/api"}}}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, errX := DecodeOpenAPI(a)
		y, errY := DecodeOpenAPI(b)
		if errX != nil || errY != nil {
			return
		}
		merged := MergeOpenAPI([]OpenAPISource{{Server: "a", Index: x}, {Server: "b", Index: y}})
		swapped := MergeOpenAPI([]OpenAPISource{{Server: "b", Index: y}, {Server: "a", Index: x}})
		if !maps.Equal(merged, swapped) {
			t.Fatalf("%v, swapped %v", merged, swapped)
		}
		for path, u := range merged {
			if u != x[path] && u != y[path] || !strings.HasPrefix(u, "/openapi/v3/") {
				t.Fatalf("%q leads to %q", path, u)
			}
		}
		d, err := NewOpenAPIDocument(merged)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeOpenAPI(d.representation.body); err != nil || len(again) != len(merged) {
			t.Fatalf("%v: encoded and decoded %v, %v", merged, again, err)
		}
	})
}
