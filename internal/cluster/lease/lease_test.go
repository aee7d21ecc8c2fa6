package lease

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/cluster/etcd"
)

// encode returns an object as etcd has it.
func encode(t *testing.T, o runtime.Object, media string, gv runtime.GroupVersioner) []byte {
	t.Helper()
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if info.MediaType == media {
			value, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gv), o)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("no encoder for %s", media)
	return nil
}

func read(t *testing.T, text string) runtime.Object {
	t.Helper()
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

const builtinLease = `{"apiVersion":"v1","kind":"Endpoints","subsets":[{"addresses":[{"ip":"198.19.0.2"}],"ports":[{"port":6443}]}]}`

// referenceLease was renewed at a time, and is valid for 15 s.
func referenceLease(renewed time.Time) *coordinationv1.Lease {
	seconds := int32(15)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"proxy.skewproof.io/address": "198.19.0.3:6443"}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: &seconds},
	}
}

func TestEndpointLeasesAreReadAsTheyAreInEtcd(t *testing.T) {
	encode := func(o runtime.Object, media string, gv runtime.GroupVersioner) []byte { return encode(t, o, media, gv) }
	builtin, empty := read(t, builtinLease), read(t, `{"apiVersion":"v1","kind":"Endpoints"}`)
	now := time.Now()
	reference := func(age time.Duration) *coordinationv1.Lease { return referenceLease(now.Add(-age)) }
	for name, c := range map[string]struct {
		value []byte
		want  string
	}{
		"a kube-apiserver's":           {encode(builtin, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), "198.19.0.2:6443"},
		"the reference's":              {encode(reference(time.Second), runtime.ContentTypeProtobuf, coordinationv1.SchemeGroupVersion), "198.19.0.3:6443"},
		"the reference's, as JSON":     {encode(reference(14*time.Second), runtime.ContentTypeJSON, coordinationv1.SchemeGroupVersion), "198.19.0.3:6443"},
		"the reference's that remains": {encode(reference(16*time.Second), runtime.ContentTypeProtobuf, coordinationv1.SchemeGroupVersion), ""},
		"one that has no addresses":    {encode(empty, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), ""},
	} {
		if got, err := address(c.value, now); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := address([]byte("nothing"), now); err == nil {
		t.Error("what is no object is read")
	}
}

func TestKeysOfEndpointLeases(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/peerserverleases/apiserver-c":                   true,
		"/registry/leases/kube-system/skewproof-proxy-apiserver-c": true,
		"/registry/leases/kube-system/apiserver-c":                 false, // an identity lease
		"/registry/leases/default/skewproof-proxy-apiserver-c":     false,
		"/registry/configmaps/skewproof/peerserverleases":          false,
		"/registry/leases/kube-system/kube-controller-manager":     false,
	} {
		if got := IsKey(key); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
	}
}

// Peers of the reference use its own lease.
func TestTheLeaseOfTheReferenceComesFirst(t *testing.T) {
	const (
		own  = "/registry/peerserverleases/apiserver-c"
		side = "/registry/leases/kube-system/skewproof-proxy-apiserver-c"
	)
	builtin := encode(t, read(t, builtinLease), runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion)
	renewed := func(age time.Duration) []byte {
		return encode(t, referenceLease(time.Now().Add(-age)), runtime.ContentTypeProtobuf, coordinationv1.SchemeGroupVersion)
	}
	for name, c := range map[string]struct {
		kept map[string][]byte
		want string
	}{
		"both":                         {map[string][]byte{own: builtin, side: renewed(time.Second)}, "198.19.0.3:6443"},
		"the reference's only":         {map[string][]byte{side: renewed(time.Second)}, "198.19.0.3:6443"},
		"the kube-apiserver's only":    {map[string][]byte{own: builtin}, "198.19.0.2:6443"},
		"the reference's has expired":  {map[string][]byte{own: builtin, side: renewed(time.Hour)}, "198.19.0.2:6443"},
		"none":                         {nil, ""},
		"one that another server has":  {map[string][]byte{own + "d": builtin}, ""},
		"an expired one, and no other": {map[string][]byte{side: renewed(time.Hour)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked struct {
					Key []byte `json:"key"`
				}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				answer := map[string]any{"header": map[string]string{"revision": "1"}}
				if value, ok := c.kept[string(asked.Key)]; ok {
					answer["kvs"] = []map[string][]byte{{"key": asked.Key, "value": value}}
				}
				_ = json.NewEncoder(w).Encode(answer)
			}))
			defer server.Close()
			got, err := Advertised(t.Context(), etcd.Gateway{Client: server.Client(), Address: server.Listener.Addr().String()}, "apiserver-c")
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
