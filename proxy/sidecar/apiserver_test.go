package sidecar

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// apiserver is a kube-apiserver with the real filters of k8s.io/apiserver (see filtered). Behind
// the filters there is a stand-in. It serves some resources, reviews tokens, and records its
// requests.
type apiserver struct {
	t      testing.TB
	name   string
	server *httptest.Server

	mu                          sync.Mutex
	filters                     http.Handler                     // replaces the usual filters; nil: the usual ones
	front                       *x509.CertPool                   // of front proxies
	hint                        *x509.CertPool                   // named to clients; nil: none
	unpublished                 bool                             // there is no ConfigMap yet
	headers                     *identityNames                   // the headers from which identities are read
	forbids                     func(authorizer.Attributes) bool // nil: only what RBAC's defaults forbid
	grants                      func(authorizer.Attributes) bool // nil: only what RBAC's defaults grant
	resources                   []schema.GroupVersionResource
	tokens                      map[string]authenticationv1.UserInfo
	leases                      map[string]*coordinationv1.Lease
	endpoints                   *discoveryv1.EndpointSlice // of all servers; nil: there is none
	openAPI                     http.Handler               // of /openapi/v3; nil: 404
	versions                    http.Handler               // the legacy list at /api; nil: the aggregated one
	unready                     bool
	admits                      []apiserverapi.AnonymousAuthCondition // where anonymous requests are accepted; none: at all paths
	noAnonymous                 bool                                  // --anonymous-auth=false
	hooks                       []string                              // further checks of health
	clients                     *x509.CertPool                        // of client certificates; nil: they authenticate nobody
	noReviews                   bool                                  // no user may ask for the user of a token
	older                       bool                                  // there is no SelfSubjectReview, as before v1.28
	process                     *tls.Certificate                      // the loopback certificate; nil: not a kube-apiserver
	started                     string                                // the start time of its process
	metrics                     string                                // further metrics
	apiServices                 []any                                 // nil: there are none
	publishes                   *identityNames                        // the published names of headers; nil: headers
	seen                        []seen
	tokenReviews, accessReviews int         // the number of reviews that callers asked for
	byToken                     int         // requests with the kubeconfig's credentials
	events                      chan string // for watches
	maps                        chan string // for watches of ConfigMaps
}

// kubeconfigToken is the token in the kubeconfigs of these tests, and kubeconfigUser its user.
const (
	kubeconfigToken = "the-kubeconfigs-own"
	kubeconfigUser  = "system:sidecar"
)

// seen is a received request, except requests of the sidecar itself.
type seen struct {
	method, path, query, user, uid string // the caller, before impersonation
	groups                         []string
	extra                          map[string][]string
	header                         http.Header // as it was received
	body                           []byte      // if the stand-in serves the request
	certified                      bool        // the connection has a client certificate
	proto                          int         // the major version of HTTP
}

func newAPIServer(t testing.TB, name string, serving issued, front *authority, resources ...schema.GroupVersionResource) *apiserver {
	a := &apiserver{
		t: t, name: name, front: pool(front), headers: standardNames, resources: resources, started: "1000.5",
		tokens: map[string]authenticationv1.UserInfo{}, leases: map[string]*coordinationv1.Lease{}, events: make(chan string), maps: make(chan string),
	}
	usual := a.filtered(http.HandlerFunc(a.serve), 0)
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var filters http.Handler
		a.set(func() { filters = a.filters })
		if filters == nil {
			filters = usual
		}
		filters.ServeHTTP(w, r)
	}))
	useKubeWindows(a.server.Config)
	a.restart()
	config := &tls.Config{
		ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving.tls(t)},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if hello.ServerName == loopbackName {
				return a.process, nil
			}
			return nil, nil // nil: the certificate above
		},
	}
	a.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		current := config.Clone()
		current.NextProtos, current.ClientCAs = []string{"h2", "http/1.1"}, a.hint
		return current, nil
	}}
	a.server.EnableHTTP2 = true
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	return a
}

// restart simulates a new process: a new loopback certificate, and all connections closed.
func (a *apiserver) restart() {
	made := newAuthority(a.t, loopbackName).issue(subject{name: loopbackName, dns: []string{loopbackName}}).tls(a.t)
	a.set(func() { a.process = &made })
	if a.server.Listener != nil && a.server.URL != "" {
		a.server.CloseClientConnections()
	}
}

// vanish ends the server for good. [httptest.Server.Close] waits for requests in flight, and a
// sidecar may begin a watch on a new connection at any moment until then. So the connections are
// closed until the server has ended.
func (a *apiserver) vanish() {
	ended := make(chan struct{})
	go func() { defer close(ended); a.server.Close() }()
	await(a.t, "the server has ended", func() bool {
		a.server.CloseClientConnections()
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

func (a *apiserver) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// last returns the last request for a path that was sent for a caller, not for the sidecar itself.
func (a *apiserver) last(path string) (seen, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range slices.Backward(a.seen) {
		if s.path == path {
			return s, true
		}
	}
	return seen{}, false
}

// count returns how many requests for a path were sent for callers, not for the sidecar itself.
func (a *apiserver) count(path string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seen {
		if s.path == path {
			n++
		}
	}
	return n
}

func (a *apiserver) lease(name string) *coordinationv1.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leases[name].DeepCopy()
}

func (a *apiserver) serve(w http.ResponseWriter, r *http.Request) {
	caller := callerOf(r)
	s := seen{
		method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, user: caller.user.GetName(), uid: caller.user.GetUID(),
		groups: caller.user.GetGroups(), extra: caller.user.GetExtra(), header: caller.header,
		certified: len(r.TLS.PeerCertificates) > 0, proto: r.ProtoMajor,
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.user == kubeconfigUser {
		a.byToken++
	} else if s.user != selfUser.Name && s.path != anonymousPath {
		a.seen = append(a.seen, s)
	}
	switch path := r.URL.Path; {
	case path == "/readyz":
		if a.unready {
			http.Error(w, "[-]etcd failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)
			return
		}
		if _, verbose := r.URL.Query()["verbose"]; verbose {
			fmt.Fprint(w, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n")
			return
		}
		fmt.Fprint(w, "ok")
	case path == "/livez":
		fmt.Fprint(w, "[+]ping ok\n")
		for _, hook := range a.hooks {
			fmt.Fprintf(w, "[+]%s ok\n", hook)
		}
		fmt.Fprint(w, "livez check passed\n")
	case path == "/metrics":
		fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %s\n%s", a.started, a.metrics)
	case path == "/version":
		a.write(w, "application/json", map[string]string{"gitVersion": "v1.37.1"})
	case a.openAPI != nil && strings.HasPrefix(path, "/openapi/v3"):
		a.openAPI.ServeHTTP(w, r)
	case strings.TrimSuffix(path, "/") == "/api" && a.versions != nil && !strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList"):
		a.versions.ServeHTTP(w, r)
	case path == "/api" || path == "/apis" || path == "/apis/":
		a.write(w, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", a.document(strings.TrimSuffix(path, "/")))
	case path == "/api/v1/namespaces/kube-system/configmaps":
		items := []any{a.authenticationConfig()}
		if a.unpublished {
			items = nil
		}
		a.list(w, r, items)
	case path == "/api/v1/namespaces/kube-system/configmaps/"+authenticationConfig && !a.unpublished:
		a.write(w, "application/json", a.authenticationConfig())
	case path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		switch {
		case a.older:
			a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		case a.noReviews && s.user != selfUser.Name:
			a.status(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
			return
		}
		effective, _ := apirequest.UserFrom(r.Context())
		a.write(w, "application/json", authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfoOf(effective)},
		})
	case path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		a.reviewAccess(w, r)
	case path == "/apis/authentication.k8s.io/v1/tokenreviews":
		a.tokenReviews++
		a.review(w, r)
	case strings.HasPrefix(path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"):
		a.serveLease(w, r)
	case path == "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices":
		items := []any{}
		if a.endpoints != nil {
			items = append(items, a.endpoints)
		}
		a.list(w, r, items)
	case path == "/apis/apiregistration.k8s.io/v1/apiservices":
		a.list(w, r, slices.Concat([]any{}, a.apiServices))
	case path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
		a.list(w, r, []any{})
	case strings.HasSuffix(path, "/proxy/login"), strings.HasSuffix(path, "/answers-401"):
		a.status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case a.serves(path) && strings.HasSuffix(path, "/exec"):
		a.upgrade(w, r)
	case a.serves(path) && r.URL.Query().Get("watch") == "true":
		a.watch(w, r)
	case a.serves(path):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			a.t.Errorf("%s: read the body of %s: %v", a.name, path, err)
		}
		a.seen[len(a.seen)-1].body = body
		w.Header().Set("X-Served-By", a.name)
		a.write(w, "application/json", map[string]any{"kind": "List", "items": []any{}})
	default:
		a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// serves reports whether the resource of a path is served. Paths are
// /apis/<group>/<version>/<resource>/… and /api/<version>/….
func (a *apiserver) serves(path string) bool {
	for _, r := range a.resources {
		base := "/apis/" + r.Group + "/" + r.Version + "/"
		if r.Group == "" {
			base = "/api/" + r.Version + "/"
		}
		if rest, ok := strings.CutPrefix(path, base); ok && slices.Contains(strings.Split(rest, "/"), r.Resource) {
			return true
		}
	}
	return false
}

func (a *apiserver) document(path string) apidiscoveryv2.APIGroupDiscoveryList {
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for _, r := range a.resources {
		if (r.Group == "") != (path == "/api") {
			continue
		}
		resource := apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Resource, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list", "watch", "create"},
			ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: kindOf(r.Resource)},
			Subresources: []apidiscoveryv2.APISubresourceDiscovery{
				{Subresource: "exec", Verbs: []string{"get", "create"}}, {Subresource: "proxy", Verbs: []string{"get", "create"}},
			},
		}
		if last := len(list.Items) - 1; last >= 0 && list.Items[last].Name == r.Group && list.Items[last].Versions[0].Version == r.Version {
			v := &list.Items[last].Versions[0]
			v.Resources = append(v.Resources, resource)
			continue
		}
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: r.Group},
			Versions:   []apidiscoveryv2.APIVersionDiscovery{{Version: r.Version, Resources: []apidiscoveryv2.APIResourceDiscovery{resource}}},
		})
	}
	return list
}

// kindOf returns the kind of a resource of the stand-in.
func kindOf(resource string) string { return strings.ToUpper(resource[:1]) + resource[1:] }

func (a *apiserver) review(w http.ResponseWriter, r *http.Request) {
	if a.noReviews {
		a.status(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	var review authenticationv1.TokenReview
	a.read(r, &review)
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	review.Status.User, review.Status.Authenticated = a.tokens[review.Spec.Token], a.tokens[review.Spec.Token].Username != ""
	a.write(w, "application/json", review)
}

// reviewAccess answers as the stand-in's own authorizer would.
func (a *apiserver) reviewAccess(w http.ResponseWriter, r *http.Request) {
	a.accessReviews++
	if a.noReviews {
		a.status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	}
	var review authorizationv1.SubjectAccessReview
	a.read(r, &review)
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	spec := review.Spec
	u := infoOf(authenticationv1.UserInfo{Username: spec.User, UID: spec.UID, Groups: spec.Groups})
	for key, values := range spec.Extra {
		u.Extra[key] = values
	}
	at := authorizer.AttributesRecord{User: u}
	if n := spec.NonResourceAttributes; n != nil {
		at.Path, at.Verb = n.Path, n.Verb
	} else if n := spec.ResourceAttributes; n != nil {
		at.ResourceRequest, at.Verb, at.Namespace, at.Name = true, n.Verb, n.Namespace, n.Name
		at.APIGroup, at.APIVersion, at.Resource, at.Subresource = n.Group, n.Version, n.Resource, n.Subresource
	}
	a.mu.Unlock()
	decision, reason, _ := a.authorize(r.Context(), at)
	a.mu.Lock()
	review.Status.Allowed, review.Status.Reason = decision == authorizer.DecisionAllow, reason
	a.write(w, "application/json", review)
}

// upgrade upgrades the connection and echoes everything.
func (a *apiserver) upgrade(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		a.t.Errorf("%s: an upgrade by %s: %v", a.name, r.Proto, err)
		return
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	defer conn.Close()
	fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Served-By: %s\r\n\r\n", r.Header.Get("Upgrade"), a.name)
	buffered.Flush()
	_, _ = io.Copy(conn, buffered)
}

// read decodes an object in protobuf or JSON. If the body breaks off, the caller has closed its
// connection. Then into does not change, and no client reads the answer.
func (a *apiserver) read(r *http.Request, into runtime.Object) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		a.t.Errorf("%s: read what was sent to %s: %v", a.name, r.URL.Path, err)
	}
}

// write answers in JSON. It does not log that a caller has closed its connection, because a handler
// behind the real filters may still run when its test has ended.
func (a *apiserver) write(w http.ResponseWriter, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(body)
}

func (a *apiserver) status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: a.name + " says so",
	})
}
