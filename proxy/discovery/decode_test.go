package discovery

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDecodeAgrees decodes one document in all recorded forms.
func TestDecodeAgrees(t *testing.T) {
	for version, answers := range recordedAnswers(t) {
		documents := documentsOf(t, answers)
		decoded := 0
		for _, a := range answers {
			if a.Status != 200 || !IsAggregated(a.Accept) || strings.HasPrefix(a.Accept, "application/yaml") {
				continue
			}
			for _, contentType := range []string{a.Header["Content-Type"], strings.Split(a.Header["Content-Type"], ";")[0], ""} {
				got, err := Decode(contentType, a.Body)
				if err != nil {
					t.Errorf("%s %s as %q: %v", version, a.Accept, contentType, err)
					continue
				}
				if diff := cmp.Diff(documents[a.Path].Groups(), got); diff != "" {
					t.Errorf("%s %s as %q:\n%s", version, a.Accept, contentType, diff)
				}
				decoded++
			}
		}
		if decoded < 24 {
			t.Errorf("%s: decoded only %d bodies", version, decoded)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	const v2 = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`
	for _, c := range []struct{ name, contentType, body, want string }{
		{"legacy groups", "application/json", `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`, "legacy APIGroupList"},
		{"legacy versions, without apiVersion", "application/json", `{"kind":"APIVersions","versions":["v1"]}`, "legacy APIVersions"},
		{"an error", "application/json", `{"kind":"Status","apiVersion":"v1","code":403}`, "a Status"},
		{"another list", "application/json", `{"kind":"PodList","apiVersion":"v1"}`, "PodList"},
		{"another version", "application/json", `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v3"}`, "v3"},
		{"an item alone", "application/json", `{"kind":"APIGroupDiscovery","apiVersion":"apidiscovery.k8s.io/v2"}`, "APIGroupDiscovery"},
		{"nothing says what it is", "application/json", `{"items":[]}`, "neither the body nor the content type"},
		{"empty", "application/json", ``, "decode discovery"},
		{"not JSON", "application/json", `<html>`, "decode discovery as application/json"},
		{"a list", "application/json", `[]`, "decode discovery"},
		{"wrong field", "application/json", `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":{}}`, "decode discovery"},
		{"JSON declared as protobuf", "application/vnd.kubernetes.protobuf", v2, "decode discovery as application/vnd.kubernetes.protobuf"},
		{"protobuf declared as JSON", "application/json", "k8s\x00\n\x00", "decode discovery as application/json"},
		{"protobuf cut short", "", "k8s\x00\n\xff", "decode discovery as application/vnd.kubernetes.protobuf"},
		{"YAML", "application/yaml", v2, "are understood"},
		{"text", "text/plain", v2, "are understood"},
		{"malformed content type", "application/json;;=", v2, "content type"},
		{"too many elements", "application/json", v2[:len(v2)-2] + "{}" + strings.Repeat(",{}", MaxElements) + "]}", "more elements"},
		{"too many in protobuf", "", "k8s\x00" + strings.Repeat("\x12\x00", MaxElements), "more elements"},
		{"too large", "application/json", v2 + strings.Repeat(" ", MaxBody), "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups, err := Decode(c.contentType, []byte(c.body))
			if err == nil || !strings.Contains(err.Error(), c.want) || groups != nil {
				t.Errorf("got %v, error %v; want an error about %q", groups, err, c.want)
			}
		})
	}
	if _, err := Decode("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", []byte(`{"items":[]}`)); err != nil {
		t.Errorf("the content type says what it is: %v", err)
	}
	if _, err := Decode("Application/JSON; charset=utf-8", []byte(v2)); err != nil {
		t.Errorf("a charset does not matter: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("application/json", []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","items":[{"metadata":{"name":"a"},"versions":[{"version":"v1"}]}]}`))
	f.Add("", []byte("k8s\x00\n\x00"))
	f.Add("application/vnd.kubernetes.protobuf", []byte("k8s\x00\x0a\x2f"))
	for version, body := range recordedFiles(f, "api") {
		groups, err := Decode("application/json", body)
		if err != nil {
			f.Fatal(version, err)
		}
		f.Add("application/json", body)
		var b bytes.Buffer
		d := NewDocument("/api", groups)
		list, err := d.object(rendering{form: "v2"}, nil)
		if err != nil {
			f.Fatal(err)
		}
		if err := typed(runtime.ContentTypeProtobuf).Encode(list, &b); err != nil {
			f.Fatal(err)
		}
		f.Add("application/vnd.kubernetes.protobuf", b.Bytes())
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		groups, err := Decode(contentType, body)
		if err != nil {
			if groups != nil || !strings.HasPrefix(err.Error(), "decode discovery") {
				t.Fatalf("groups %v, error %v", groups, err)
			}
			return
		}
		// Every decoded document can be indexed, merged with itself, and served in every form.
		NewIndex(groups)
		merged := Merge([]Source{{Server: "a", Groups: groups}, {Server: "b", Groups: copied(groups)}})
		d := NewDocument("/apis", merged)
		for _, accept := range []string{AcceptV2, AcceptV2Beta1, "application/json", "application/vnd.kubernetes.protobuf"} {
			if w := get(d.ServeHTTP, accept); w.Code != 200 {
				t.Fatalf("%s: %d %s", accept, w.Code, w.Body)
			}
		}
	})
}
