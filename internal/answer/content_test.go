package answer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/history"
)

func TestContentOf(t *testing.T) {
	codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
	encoded, err := runtime.Encode(codec, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, contentType, body string
		want                    history.Content
	}{
		{"JSON", "application/json", `{"kind":"ConfigMapList","items":[]}`, history.ContentWhole},
		{"JSON of some form", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{}` + "\n", history.ContentWhole},
		{"JSON cut off", "application/json", `{"kind":"ConfigMapList","items":[{}`, history.ContentBroken},
		{"JSON without any bytes", "application/json", "", history.ContentBroken},
		{"protobuf", runtime.ContentTypeProtobuf, string(encoded), history.ContentWhole},
		{"protobuf cut off", runtime.ContentTypeProtobuf, string(encoded[:len(encoded)-3]), history.ContentBroken},
		{"protobuf without any bytes", runtime.ContentTypeProtobuf, "", history.ContentBroken},
		{"CBOR", "application/cbor", "\xa0", history.ContentWhole},
		{"CBOR that says so", "application/cbor", "\xd9\xd9\xf7\xa1\x41a\x41b", history.ContentWhole},
		{"CBOR cut off", "application/cbor", "\xa1\x61", history.ContentBroken},
		{"YAML is unknown", "application/yaml", "a: [", history.ContentUnknown},
		{"text is unknown", "text/plain", "ok", history.ContentUnknown},
		{"no type", "", "", history.ContentUnknown},
	} {
		if got := ContentOf(tt.contentType, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestParseLegacy(t *testing.T) {
	encode := func(object runtime.Object) []byte {
		body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), schema.GroupVersion{Version: "v1"}), object)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	apps := []history.Resource{{GVR: history.GVR{Group: "apps", Version: "v1"}}, {GVR: history.GVR{Group: "apps", Version: "v2"}}}
	core := []history.Resource{{GVR: history.GVR{Version: "v1"}}}
	for _, tt := range []struct {
		name string
		body []byte
		want []history.Resource // nil: want an error
	}{
		{"groups", []byte(`{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v2","version":"v2"},{"version":"v1"}]}]}`), apps},
		{"the core group", []byte(`{"kind":"APIVersions","versions":["v1"]}`), core},
		{"aggregated, in its first version", []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1",` +
			`"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1"},{"version":"v2"}]}]}`), apps},
		{"groups in protobuf", encode(&metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}, {Version: "v2"}}}}}), apps},
		{"the core group in protobuf", encode(&metav1.APIVersions{Versions: []string{"v1"}}), core},
		{"aggregated, in its present version", []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`), nil},
		{"something else", []byte(`{"kind":"Status"}`), nil},
		{"text", []byte("404 page not found"), nil},
		{"protobuf cut off", []byte("k8s\x00\x0a\x0f"), nil},
	} {
		doc, err := ParseLegacy(tt.body)
		if (err != nil) != (tt.want == nil) || !cmp.Equal(doc.Resources, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, doc.Resources, err, tt.want)
		}
	}
}

func TestParseOpenAPI(t *testing.T) {
	doc, err := ParseOpenAPI([]byte(`{"paths":{"apis/apps/v1":{},"api/v1":{},"apis/apps":{},".well-known/x":{},"/apis/batch/v1/jobs":{},"/apis/batch/v1/":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range doc.Resources {
		got = append(got, r.Group+"/"+r.Version)
	}
	if want := []string{"/v1", "apps/v1", "batch/v1"}; !slices.Equal(got, want) {
		t.Errorf("it describes %q, want %q", got, want)
	}
	for _, bad := range []string{`{}`, `[`, `{"paths":{}}`} {
		if _, err := ParseOpenAPI([]byte(bad)); err == nil {
			t.Errorf("%s counts as a description", bad)
		}
	}
}
