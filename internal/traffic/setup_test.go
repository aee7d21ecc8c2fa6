package traffic

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// unrecorded returns a configuration like those with which Setup and Discover are called.
func unrecorded(s *apiserver) *rest.Config {
	config := s.config()
	config.Host = s.URL
	return &config
}

const (
	alreadyExists = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`
	forbidden     = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"you may not","code":403}`
	tokenAnswer   = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"the-token"}}`
)

func TestSetup(t *testing.T) {
	for _, tt := range []struct {
		name      string
		refuse    string // the path to which the server answers forbidden
		wantError string
	}{
		{name: "everything exists already"},
		{name: "a role may not be created", refuse: "/clusterroles", wantError: "create cluster role skewproof-reader: you may not"},
		{name: "no token is given", refuse: "/token", wantError: "request a token for the service account skewproof-writer: you may not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Method+" "+r.URL.Path)
				mu.Unlock()
				switch {
				case tt.refuse != "" && strings.HasSuffix(r.URL.Path, tt.refuse):
					respond(w, http.StatusForbidden, "application/json", forbidden)
				case strings.HasSuffix(r.URL.Path, "/token"):
					respond(w, http.StatusCreated, "application/json", tokenAnswer)
				default:
					respond(w, http.StatusConflict, "application/json", alreadyExists)
				}
			})
			admin, err := kubernetes.NewForConfig(unrecorded(server))
			if err != nil {
				t.Fatal(err)
			}
			token, crowd, err := Setup(t.Context(), admin)
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Errorf("error %v, want one that says %q", err, tt.wantError)
				}
				return
			}
			if err != nil || token != "the-token" || crowd != "the-token" {
				t.Errorf("tokens %q and %q, error %v", token, crowd, err)
			}
			want := []string{
				"POST /api/v1/namespaces",
				"POST /api/v1/namespaces/skewproof/serviceaccounts",
				"POST /apis/rbac.authorization.k8s.io/v1/clusterroles",
				"POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
				"POST /apis/rbac.authorization.k8s.io/v1/namespaces/skewproof/roles",
				"POST /apis/rbac.authorization.k8s.io/v1/namespaces/skewproof/rolebindings",
				"POST /api/v1/namespaces/skewproof/serviceaccounts",
				"POST /apis/rbac.authorization.k8s.io/v1/clusterroles",
				"POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
				"POST /api/v1/namespaces/skewproof/serviceaccounts/skewproof-writer/token",
				"POST /api/v1/namespaces/skewproof/serviceaccounts/skewproof-crowd/token",
			}
			if !slices.Equal(asked, want) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestDiscover(t *testing.T) {
	read := func(name string) string {
		body, err := os.ReadFile("../answer/testdata/discovery/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	api, apis, legacy := read("api.json"), read("v1.36.3.apis.json"), read("legacy.json")
	for _, tt := range []struct {
		name      string
		apis      func(http.ResponseWriter)
		wantError string
	}{
		{"local documents", func(w http.ResponseWriter) { respond(w, http.StatusOK, workload.AcceptAggregated, apis) }, ""},
		{"a server without aggregated discovery", func(w http.ResponseWriter) { respond(w, http.StatusOK, "application/json", legacy) },
			`fetch discovery at /apis: parse aggregated discovery: got kind "APIGroupList"`},
		{"a server that is not ready", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			respond(w, http.StatusServiceUnavailable, "text/plain", "not yet")
		}, "fetch discovery at /apis: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.Header.Get("Accept"), ";profile=nopeer") {
					t.Errorf("asked for %q", r.Header.Get("Accept"))
				}
				if r.URL.Path == "/api" {
					respond(w, http.StatusOK, workload.AcceptAggregated, api)
					return
				}
				tt.apis(w)
			})
			client, err := kubernetes.NewForConfig(unrecorded(server))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := Discover(t.Context(), client.RESTClient())
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Errorf("error %v, want one that says %q", err, tt.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if doc.Hash != answer.Hash([]byte(api+apis)) || doc.Bytes != len(api)+len(apis) {
				t.Errorf("hash %s of %d bytes, want that of both bodies", doc.Hash, doc.Bytes)
			}
			if first := doc.Resources[0].GVR; first != (history.GVR{Version: "v1", Resource: "bindings"}) || len(doc.Resources) < 80 {
				t.Errorf("%d resources, the first is %s; want those of /api first", len(doc.Resources), first)
			}
		})
	}
}
