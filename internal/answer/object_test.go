package answer

import (
	"net/http"
	"testing"
)

func TestObject(t *testing.T) {
	one := Object([]byte(`{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}}`))
	if one == "" || one != Object([]byte(`{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}}`)) {
		t.Errorf("the same object is %q", one)
	}
	for _, other := range []string{
		`{"kind":"X","metadata":{"resourceVersion":"8"},"data":{"a":"b"}}`, `{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"c"}}`,
		`{"kind":"X"}`, `{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}} `,
	} {
		if got := Object([]byte(other)); got == one || got == "" {
			t.Errorf("%s is %q", other, got)
		}
	}
	for _, none := range []string{"", "k8s\x00", "404 page not found", `[]`, `{"metadata":`} {
		if got := Object([]byte(none)); got != "" {
			t.Errorf("%q is taken for an object: %q", none, got)
		}
	}
}

func TestHeaders(t *testing.T) {
	h := http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-cache, private", "no-cache, private"}, "Warning": {`299 - "b"`, `299 - "a"`},
		"Date": {"now"}, "Content-Length": {"5"}, "Audit-Id": {"x"}, "X-Kubernetes-Pf-Flowschema-Uid": {"y"}, "Transfer-Encoding": {"chunked"},
	}
	const want = "Cache-Control: no-cache, private\nContent-Type: application/json\nWarning: 299 - \"a\", 299 - \"b\""
	if got := Headers(h); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Headers(nil); got != "" {
		t.Errorf("no headers are %q", got)
	}
}
