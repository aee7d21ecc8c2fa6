package lease

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

func TestEndpointLeasesAreReadAsTheyAreInEtcd(t *testing.T) {
	encode := func(o runtime.Object, media string, gv runtime.GroupVersioner) []byte { return encode(t, o, media, gv) }
	builtin, empty := read(t, builtinLease), read(t, `{"apiVersion":"v1","kind":"Endpoints"}`)
	for name, c := range map[string]struct {
		value []byte
		want  string
	}{
		"one":                       {encode(builtin, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), "198.19.0.2:6443"},
		"one as JSON":               {encode(builtin, runtime.ContentTypeJSON, corev1.SchemeGroupVersion), "198.19.0.2:6443"},
		"one that has no addresses": {encode(empty, runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion), ""},
	} {
		if got, err := address(c.value); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := address([]byte("nothing")); err == nil {
		t.Error("what is no object is read")
	}
}

func TestKeysOfEndpointLeases(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/peerserverleases/apiserver-c":          true,
		"/registry/leases/kube-system/apiserver-c":        false, // an identity lease
		"/registry/configmaps/skewproof/peerserverleases": false,
	} {
		if got := IsKey(key); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
	}
}

func TestTheLeaseOfAServer(t *testing.T) {
	const own = "/registry/peerserverleases/apiserver-c"
	lease := encode(t, read(t, builtinLease), runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion)
	for name, c := range map[string]struct {
		kept map[string][]byte
		want string
	}{
		"one":                         {map[string][]byte{own: lease}, "198.19.0.2:6443"},
		"none":                        {nil, ""},
		"one that another server has": {map[string][]byte{own + "d": lease}, ""},
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
