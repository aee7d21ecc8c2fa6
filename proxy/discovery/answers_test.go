package discovery

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer is a kube-apiserver's answer to a GET.
type answer struct {
	Path, Accept string
	Status       int
	Header       map[string]string
	Body         []byte
}

func recordedAnswers(t *testing.T) map[string][]answer {
	t.Helper()
	paths, err := filepath.Glob("testdata/answers-*.json.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	all := map[string][]answer{}
	for _, path := range paths {
		var answers []answer
		if err := json.Unmarshal(readCompressed(t, path), &answers); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(strings.TrimPrefix(path, "testdata/answers-"), ".json.gz")] = answers
	}
	return all
}

// documentsOf makes documents from the server's aggregated v2 answers.
func documentsOf(t *testing.T, answers []answer) map[string]*Document {
	t.Helper()
	documents := map[string]*Document{}
	for _, a := range answers {
		if a.Accept == AcceptV2 {
			groups, err := Decode(a.Header["Content-Type"], a.Body)
			if err != nil {
				t.Fatal(err)
			}
			documents[a.Path] = NewDocument(a.Path, groups)
		}
	}
	if len(documents) != 2 {
		t.Fatalf("recorded aggregated documents of %d roots, want 2", len(documents))
	}
	return documents
}

func get(handler http.HandlerFunc, accept string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler(w, r)
	return w
}

// serving returns the handler of a path. It answers 404 if the path is not served.
func serving(documents map[string]*Document, path string) http.HandlerFunc {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	d := documents["/"+parts[0]]
	return func(w http.ResponseWriter, r *http.Request) {
		found := true
		switch {
		case len(parts) == 1:
			d.ServeHTTP(w, r)
		case parts[0] == "api":
			found = d.ServeVersion(w, r, "", parts[1])
		case len(parts) == 2:
			found = d.ServeGroup(w, r, parts[1])
		default:
			found = d.ServeVersion(w, r, parts[1], parts[2])
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// TestAnswersEqualKubeAPIServers compares bytes and headers with answers of real servers. Comments
// explain the deliberate differences.
func TestAnswersEqualKubeAPIServers(t *testing.T) {
	for version, answers := range recordedAnswers(t) {
		documents := documentsOf(t, answers)
		compared := 0
		for _, a := range answers {
			t.Run(version+a.Path+" "+a.Accept, func(t *testing.T) {
				got := get(serving(documents, a.Path), a.Accept)
				if strings.Contains(a.Accept, "v=v2beta1") && a.Status == http.StatusNotAcceptable {
					// 1.33 removed it. This package still serves it, for old clients.
					if got.Code != http.StatusOK {
						t.Errorf("v2beta1: status %d", got.Code)
					}
					return
				}
				if got.Code != a.Status {
					t.Fatalf("status %d, the server's is %d", got.Code, a.Status)
				}
				for _, name := range []string{"Content-Type", "Cache-Control", "Vary"} {
					if want := a.Header[name]; want != "" && got.Header().Get(name) != want {
						t.Errorf("%s is %q, the server's is %q", name, got.Header().Get(name), want)
					}
				}
				if want := a.Header["Etag"]; want != "" && a.Accept == AcceptV2 && !bytes.Contains(a.Body, []byte("creationTimestamp")) && got.Header().Get("ETag") != want {
					t.Errorf("ETag %s, the server's is %s", got.Header().Get("ETag"), want)
				}
				if a.Status != http.StatusOK {
					return // the servers' own error texts differ between /api and /apis
				}
				compareBodies(t, a, got.Body.Bytes())
				compared++
			})
		}
		if compared < 30 {
			t.Errorf("%s: only %d bodies compared", version, compared)
		}
	}
}

func compareBodies(t *testing.T, a answer, got []byte) {
	t.Helper()
	isVersion := strings.Count(a.Path, "/") == 3 || strings.HasPrefix(a.Path, "/api/")
	isVersions := a.Path == "/api" && !IsAggregated(a.Accept)
	if bytes.Contains(a.Body, []byte("creationTimestamp")) {
		// The API machinery before 0.34 wrote the zero time, which has the same meaning.
		mediaType, _, _ := strings.Cut(a.Accept, ";")
		want, _, err := typed(mediaType).Decode(a.Body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		have, _, err := typed(mediaType).Decode(got, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("-server +ours:\n%s", diff)
		}
		return
	}
	if !isVersion && !isVersions {
		if !bytes.Equal(got, a.Body) {
			t.Errorf("the body differs (-server +ours):\n%s", cmp.Diff(string(a.Body), string(got)))
		}
		return
	}
	// Our answer lacks the fields that aggregated discovery does not have: see legacy.go.
	if isVersions {
		var want, have metav1.APIVersions
		decodeLegacy(t, a.Accept, a.Body, &want)
		decodeLegacy(t, a.Accept, got, &have)
		if len(want.ServerAddressByClientCIDRs) != 1 {
			t.Fatalf("the server says %v", want)
		}
		want.ServerAddressByClientCIDRs = have.ServerAddressByClientCIDRs
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("-server +ours:\n%s", diff)
		}
		return
	}
	var want, have metav1.APIResourceList
	decodeLegacy(t, a.Accept, a.Body, &want)
	decodeLegacy(t, a.Accept, got, &have)
	for i := range want.APIResources {
		want.APIResources[i].StorageVersionHash = ""
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-server +ours:\n%s", diff)
	}
}

// decodeLegacy decodes JSON or protobuf, with kind and apiVersion. The apiVersion of /api and
// /api/v1 is empty.
func decodeLegacy(t *testing.T, mediaType string, body []byte, into interface {
	Unmarshal([]byte) error
	GetObjectKind() schema.ObjectKind
}) {
	t.Helper()
	if mediaType != runtime.ContentTypeProtobuf {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatal(err)
		}
		return
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(bytes.TrimPrefix(body, protobufMagic)); err != nil {
		t.Fatal(err)
	}
	if err := into.Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	into.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
}
