package extension

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Verbs are the verbs of every resource.
var Verbs = []string{"create", "delete", "get", "list", "watch"}

var requestInfo = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

type handler struct {
	allowed string
	apis    func() ([]API, error)
	store   store
}

func newHandler(allowed string, apis func() ([]API, error)) http.Handler {
	return &handler{allowed: allowed, apis: apis}
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" {
		_, _ = w.Write([]byte("ok"))
		return
	}
	if h.user(r) == "" {
		fail(w, apierrors.NewUnauthorized("only a front proxy with the right certificate may send requests"))
		return
	}
	apis, err := h.apis()
	if err != nil {
		fail(w, apierrors.NewInternalError(err))
		return
	}
	info, err := requestInfo.NewRequestInfo(r)
	switch {
	case err != nil:
		fail(w, apierrors.NewBadRequest(err.Error()))
	case !info.IsResourceRequest:
		serveDiscovery(w, r, apis)
	case info.Subresource != "" || !serves(apis, info):
		notFound(w)
	case !slices.Contains(Verbs, info.Verb):
		fail(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb))
	default:
		h.store.serve(w, r, info)
	}
}

// user returns the user for whom a front proxy sends the request. It is empty if the client is not
// a front proxy. A request without X-Remote-User is the kube-apiserver's own: it checks whether the
// program is available.
func (h *handler) user(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || r.TLS.VerifiedChains[0][0].Subject.CommonName != h.allowed {
		return ""
	}
	return cmp.Or(r.Header.Get("X-Remote-User"), h.allowed)
}

func serves(apis []API, info *request.RequestInfo) bool {
	return slices.ContainsFunc(apis, func(a API) bool {
		return a.Group == info.APIGroup && a.Resource == info.Resource && slices.Contains(a.Versions, info.APIVersion)
	})
}

// serveDiscovery answers with the document of all APIs, of a group or of a version.
func serveDiscovery(w http.ResponseWriter, r *http.Request, apis []API) {
	document := discovery.NewDocument("/apis", groupsOf(apis))
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	served := len(parts) == 1 && parts[0] == "apis"
	switch {
	case served:
		document.ServeHTTP(w, r)
	case parts[0] != "apis":
	case len(parts) == 2:
		served = document.ServeGroup(w, r, parts[1])
	case len(parts) == 3:
		served = document.ServeVersion(w, r, parts[1], parts[2])
	}
	if !served {
		notFound(w)
	}
}

func groupsOf(apis []API) discovery.Groups {
	var groups discovery.Groups
	for _, a := range apis {
		i := slices.IndexFunc(groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == a.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: a.Group}})
		}
		group := &groups[i]
		for _, version := range a.Versions {
			v := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == version })
			if v < 0 {
				v = len(group.Versions)
				group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: version,
					Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
			}
			group.Versions[v].Resources = append(group.Versions[v].Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: a.Resource, ResponseKind: &metav1.GroupVersionKind{Group: a.Group, Version: version, Kind: a.Resource},
				Scope: apidiscoveryv2.ScopeCluster, SingularResource: a.Resource, Verbs: Verbs,
			})
		}
	}
	return groups
}

// notFound answers as the mux of an apiserver answers for an unknown path.
func notFound(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	answer(w, int(status.Code), status)
}

func answer(w http.ResponseWriter, code int, object any) {
	encoded, err := json.Marshal(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(encoded)
}
