package answer

import (
	"net/http"
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	one := Object([]byte(`{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}}`), "get")
	if one == "" || one != Object([]byte(`{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}}`), "get") {
		t.Errorf("the same object is %q", one)
	}
	for _, other := range []string{
		`{"kind":"X","metadata":{"resourceVersion":"8"},"data":{"a":"b"}}`, `{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"c"}}`,
		`{"kind":"X"}`, `{"kind":"X","metadata":{"resourceVersion":"7"},"data":{"a":"b"}} `,
	} {
		if got := Object([]byte(other), "get"); got == one || got == "" {
			t.Errorf("%s is %q", other, got)
		}
	}
	for _, verb := range []string{"get", "patch"} {
		for _, none := range []string{"", "k8s\x00", "404 page not found", `[]`, `{"metadata":`} {
			if got := Object([]byte(none), verb); got != "" {
				t.Errorf("%s: %q is taken for an object: %q", verb, none, got)
			}
		}
	}
}

// Two servers carry out the same write at different times.
func TestObjectOfAWrite(t *testing.T) {
	object := func(manager, time, data string) []byte {
		return []byte(`{"metadata":{"resourceVersion":"7","creationTimestamp":"2026-11-26T09:00:00Z","managedFields":[{"manager":"` + manager +
			`","time":"` + time + `"}]},"data":` + data + `}`)
	}
	const early, late = "2026-11-26T10:00:00Z", "2026-11-26T10:00:01Z"
	if Object(object("x", early, "9007199254740993"), "patch") == Object(object("x", early, "9007199254740992"), "patch") {
		t.Error("two large numbers are taken for one")
	}
	one := Object(object("kubectl", early, `{"a":"b"}`), "patch")
	if other := Object(object("kubectl", late, `{"a":"b"}`), "patch"); other != one {
		t.Errorf("at another time it is %q rather than %q", other, one)
	}
	if Object(object("kubectl", early, `{"a":"b"}`), "get") == Object(object("kubectl", late, `{"a":"b"}`), "get") {
		t.Error("a read has no time of its own, and must be the same to the byte")
	}
	for what, other := range map[string][]byte{
		"manager":              object("curl", early, `{"a":"b"}`),
		"field":                object("kubectl", early, `{"a":"c"}`),
		"date of its creation": []byte(strings.Replace(string(object("kubectl", early, `{"a":"b"}`)), "09:00", "09:01", 1)),
	} {
		if Object(other, "patch") == one {
			t.Errorf("with another %s it is the same", what)
		}
	}
	for _, odd := range []string{`{"metadata":7}`, `{"metadata":{"managedFields":{}}}`, `{"metadata":{"managedFields":[7,{"time":"x"}]}}`} {
		Object([]byte(odd), "patch") // must not panic
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
