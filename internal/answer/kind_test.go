package answer

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/history"
)

func TestInspect(t *testing.T) {
	encode := func(object runtime.Object) string {
		codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
		body, err := runtime.Encode(codec, object)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	recorded := func(file string) string {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, tt := range []struct {
		name string
		body string
		want history.Body
	}{
		{"nothing", "", history.BodyNone},
		{"object", `{"kind":"ConfigMap","apiVersion":"v1"}`, history.BodyObject},
		{"list", `{"kind":"ConfigMapList","items":[]}`, history.BodyList},
		{"list of custom resources, kind last", `{"apiVersion":"g/v1","items":[{"kind":"Widget"}],"kind":"WidgetList"}`, history.BodyList},
		{"table", `{"kind":"Table","apiVersion":"meta.k8s.io/v1"}`, history.BodyTable},
		{"status", `{"kind":"Status","status":"Success"}`, history.BodyStatus},
		{"protobuf object", encode(&corev1.ConfigMap{}), history.BodyObject},
		{"protobuf list", encode(&corev1.ConfigMapList{}), history.BodyList},
		{"protobuf envelope of rubbish", "k8s\x00\x01\x02", history.BodyText},
		{"aggregated discovery", recorded("testdata/discovery/merged.apis.json"), history.BodyDiscovery},
		{"legacy discovery", recorded("testdata/discovery/legacy.json"), history.BodyDiscovery},
		{"text", "404 page not found\n", history.BodyText},
		{"JSON array", `[1]`, history.BodyText},
		{"JSON cut short", `{"metadata":{`, history.BodyText},
		{"kind that is not a string", `{"kind":1}`, history.BodyText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := Inspect([]byte(tt.body)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
