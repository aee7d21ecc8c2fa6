package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestEndpointLeasesAreReadAsTheyAreInEtcd(t *testing.T) {
	encode := func(o runtime.Object, media string, gv ...runtime.GroupVersioner) []byte {
		t.Helper()
		for _, info := range scheme.Codecs.SupportedMediaTypes() {
			if info.MediaType == media {
				value, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gv[0]), o)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
		}
		t.Fatalf("no encoder for %s", media)
		return nil
	}
	read := func(text string) runtime.Object {
		t.Helper()
		object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	builtin := read(`{"apiVersion":"v1","kind":"Endpoints","subsets":[{"addresses":[{"ip":"198.19.0.2"}],"ports":[{"port":6443}]}]}`)
	empty := read(`{"apiVersion":"v1","kind":"Endpoints"}`)
	now, seconds := time.Now(), int32(15)
	sidecar := func(age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"proxy.skewproof.io/address": "198.19.0.3:6443"}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-age)}, LeaseDurationSeconds: &seconds},
		}
	}
	for name, c := range map[string]struct {
		value []byte
		want  string
	}{
		"a kube-apiserver's":        {encode(builtin, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), "198.19.0.2:6443"},
		"a sidecar's":               {encode(sidecar(time.Second), runtime.ContentTypeProtobuf, coordinationv1.SchemeGroupVersion), "198.19.0.3:6443"},
		"a sidecar's, as JSON":      {encode(sidecar(14*time.Second), runtime.ContentTypeJSON, coordinationv1.SchemeGroupVersion), "198.19.0.3:6443"},
		"a sidecar's that remains":  {encode(sidecar(16*time.Second), runtime.ContentTypeProtobuf, coordinationv1.SchemeGroupVersion), ""},
		"one that has no addresses": {encode(empty, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), ""},
	} {
		if got, err := address(c.value, now); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := address([]byte("nothing"), now); err == nil {
		t.Error("what is no object is read")
	}
}
