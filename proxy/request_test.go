package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// request is a client's request.
type request struct {
	method, target string
	header         http.Header
	body           string
	chunked        bool // the client does not announce the body's length
	breaksOff      bool // the client breaks off in the middle of the body
	trailer        bool
	user           user.Info
	limit          time.Duration // how long the client waits; zero: for ever
}

func (q *request) String() string {
	return fmt.Sprintf("%s %s %q %q as %+v", q.method, q.target, q.header, q.body, q.user)
}

// asker is the key of the user in the context of a request that is not authenticated yet.
type asker struct{}

// behindFilters puts a proxy where upstream's proxy is: behind the filters of a kube-apiserver that
// change requests or answers (k8s.io/apiserver, endpoints/filters: WithAuditInit, WithCacheControl,
// WithRequestInfo and WithAuthentication).
func behindFilters(h http.Handler) http.Handler {
	infos := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := audit.WithAuditContext(r.Context())
		id := r.Header.Get(auditinternal.HeaderAuditID)
		audit.WithAuditID(ctx, types.UID(id))
		w.Header().Set(auditinternal.HeaderAuditID, id)
		w.Header().Set("Cache-Control", "no-cache, private")
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		ctx = apirequest.WithRequestInfo(ctx, info)
		if u, ok := ctx.Value(asker{}).(user.Info); ok {
			ctx = apirequest.WithUser(ctx, u)
		}
		r.Header.Del("Authorization")
		headerrequest.ClearAuthenticationHeaders(r.Header, headerrequest.StaticStringSlice{"X-Remote-User"}, headerrequest.StaticStringSlice{"X-Remote-Uid"},
			headerrequest.StaticStringSlice{"X-Remote-Group"}, headerrequest.StaticStringSlice{"X-Remote-Extra-"})
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// send sends the request to a handler behind filters.
func (q *request) send(h http.Handler) *exchange {
	x := &exchange{}
	ctx := context.WithValue(context.WithValue(context.Background(), exchangeKey{}, x), asker{}, q.user)
	ctx = context.WithValue(ctx, http.ServerContextKey, &http.Server{}) // as for a request from a connection: only then does upstream break off
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if q.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, q.limit)
		defer cancel()
	}
	var body io.Reader
	if q.body != "" || q.chunked {
		body = strings.NewReader(q.body)
	}
	r := httptest.NewRequest(q.method, q.target, body).WithContext(ctx)
	for name, values := range q.header {
		r.Header[name] = append([]string(nil), values...)
	}
	if q.chunked {
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
	}
	if q.breaksOff {
		r.Body = &breakingBody{from: r.Body, after: 2}
	}
	if q.trailer {
		r.Trailer = http.Header{"X-Sum": {"5"}}
	}
	recorder := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != nil {
				err, ok := p.(error)
				if x.aborted = ok && errors.Is(err, http.ErrAbortHandler); !x.aborted {
					panic(p)
				}
			}
		}()
		h.ServeHTTP(recorder, r)
	}()
	answer := recorder.Result()
	received, _ := io.ReadAll(answer.Body)
	if q.method == http.MethodHead { // over a connection, the answer to a HEAD has no body
		received = nil
	}
	x.code, x.header, x.body, x.trailer = answer.StatusCode, answer.Header, string(received), answer.Trailer
	return x
}

var alice = &user.DefaultInfo{Name: "alice", Groups: []string{"people"}}

// unfit is a user that headers cannot carry.
var unfit = &user.DefaultInfo{Name: "nobody's\x00 friend", Groups: []string{" spaced "}}

// users are users of all kinds; nil is no user.
var users = []user.Info{
	alice, alice, alice, unfit, nil,
	&user.DefaultInfo{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}},
	&user.DefaultInfo{Name: "bob", UID: "42", Groups: []string{"a", "b", "a"}, Extra: map[string][]string{
		"scopes": {"one", "two"}, "example.com/key": {"x"}, "per%cent": {""}, "späce and more": {"ü"}, "Upper": {"y"},
	}},
}

// plain returns a simple request for a collection.
func plain(r proxy.Resource) *request {
	return &request{method: http.MethodGet, target: collection(r), header: http.Header{"Accept": {"application/json"}, "Audit-Id": {"1"}}, user: alice}
}

func collection(r proxy.Resource) string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

// oneOf and oneIn choose at random.
func oneOf[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

func oneIn(random *rand.Rand, n int) bool { return random.IntN(n) == 0 }

var methods = []string{
	http.MethodGet, http.MethodGet, http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead,
	http.MethodOptions, http.MethodConnect,
}

// queries are queries in every form, valid and invalid.
var queries = []string{
	"", "", "limit=5", "b=2&a=1", "a=1&a=0&b", "labelSelector=x%3D%20y%2Bz", "x=%20y+z", "a;b=1", "a=%zz", "=v&&k=", "watch=true", "fieldSelector=metadata.name%3Dn",
	"dryRun=All&fieldManager=m&force=true", "ü=%C3%BC",
}

// extras are headers, some with a meaning for a proxy and some without.
var extras = []http.Header{
	{"X-Kubernetes-Peer-Proxied": {"true"}}, {"X-Kubernetes-Peer-Proxied": {"true"}}, {"X-Kubernetes-Apiserver-Rerouted": {"true"}},
	{"Connection": {"close"}}, {"Connection": {"keep-alive, X-Custom"}, "X-Custom": {"1"}, "Keep-Alive": {"timeout=5"}},
	{"Connection": {"Audit-Id"}}, {"Connection": {"X-Forwarded-For", "user-agent,accept"}},
	{"Connection": {"Impersonate-User"}, "Impersonate-User": {"carol"}}, {"Connection": {"X-Remote-User, X-Remote-Group"}},
	{"Te": {"trailers, deflate"}}, {"Te": {"gzip"}}, {"Proxy-Authorization": {"Basic x"}, "Proxy-Connection": {"close"}},
	{"Upgrade": {"websocket"}}, {"Trailer": {"X-Sum"}},
	{"X-Forwarded-For": {"192.0.2.7"}}, {"X-Forwarded-For": {"192.0.2.7", "192.0.2.8"}}, {"X-Forwarded-Host": {"other"}, "X-Forwarded-Proto": {"http"}},
	{"Authorization": {"Bearer secret"}}, {"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"0"}},
	{"X-Remote-Extra-Scopes": {"all"}}, {"X-Remote-Control": {"on"}}, {"Impersonate-User": {"carol"}, "Impersonate-Group": {"g"}},
	{"Accept-Encoding": {"gzip"}}, {"User-Agent": {"kubectl/v1.37.1"}}, {"User-Agent": {"curl/8"}}, {"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
	{"Range": {"bytes=0-1"}}, {"Content-Type": {"application/apply-patch+yaml"}}, {"Cookie": {"a=1", "b=2"}}, {"X-Empty": {""}},
}

func withExtras(random *rand.Rand, q *request) *request {
	for !oneIn(random, 3) {
		for name, values := range oneOf(random, extras) {
			q.header[name] = values
		}
	}
	return q
}

// odd returns a request for a resource in a random form.
func odd(random *rand.Rand) *request {
	r := oneOf(random, pool)
	q := plain(r)
	q.user = oneOf(random, users)
	q.method = oneOf(random, methods)
	switch named := collection(r); random.IntN(9) {
	case 0, 1, 2:
		q.target = named + "/n"
		if r.Subresource != "" || oneIn(random, 2) {
			q.target += "/" + oneOf(random, []string{"status", "scale", "log"})
		}
	case 3:
		q.target = strings.Replace(named, "/"+r.Resource, "/namespaces/ns/"+r.Resource+"/n", 1)
	case 4:
		q.target = strings.Replace(named, "/"+r.Resource, "/namespaces/ns/"+r.Resource, 1) + "/"
	case 5:
		q.target = strings.Replace(named, "/"+r.Resource, "/watch/"+r.Resource, 1)
	case 6:
		q.target = named + oneOf(random, []string{"/a%2Fb", "/sp%20ace", "/%C3%BC", "//n", "/n/proxy/x;y=1/%3F", "/n/proxy/", "/..%2f"})
	}
	if query := oneOf(random, queries); query != "" || oneIn(random, 9) {
		q.target += "?" + query
	}
	if q.method != http.MethodGet || oneIn(random, 9) {
		q.body = oneOf(random, []string{"", `{"kind":"Thing"}`, "k8s\x00\x01", strings.Repeat("x", 3000)})
		q.chunked, q.trailer = oneIn(random, 3), oneIn(random, 9)
		q.breaksOff = q.body != "" && oneIn(random, 9)
	}
	return withExtras(random, q)
}

const v2InProtobuf = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

var accepts = []string{
	discovery.AcceptV2, discovery.AcceptV2, discovery.AcceptV2NoPeer, discovery.AcceptV2NoPeer + "," + discovery.AcceptV2,
	discovery.AcceptV2 + "," + discovery.AcceptV2NoPeer, discovery.AcceptV2Beta1, discovery.AcceptV2Beta1 + "," + discovery.AcceptV2,
	discovery.AcceptV2 + ";profile=other", "application/json", "application/json;q=0.9," + discovery.AcceptV2 + ";q=0.1", "*/*", "", "text/html", v2InProtobuf,
	strings.Replace(discovery.AcceptV2, "json", "yaml", 1), discovery.AcceptV2NoPeer + ";pretty=1",
}

// oddDiscovery returns a request for discovery in a random form. etag is the present tag of the
// merged document.
func oddDiscovery(random *rand.Rand, etag string) *request {
	gv := oneOf(random, pool)
	q := &request{method: http.MethodGet, user: alice, header: http.Header{"Audit-Id": {"1"}, "Accept": {oneOf(random, accepts)}}}
	q.target = oneOf(random, []string{
		"/apis", "/apis", "/apis", "/apis", "/apis?pretty=true", "/apis?x=1", "/apis/", "/api", "/api/v1", "/apis/" + gv.Group, "/apis/" + gv.Group + "/" + gv.Version,
		"/apis/" + gv.Group + "/" + gv.Version + "/", "/openapi/v3", "/openapi/v3/apis/" + gv.Group + "/" + gv.Version, "/openapi/v2", "/version", "/healthz", "/",
	})
	if oneIn(random, 5) {
		q.method = oneOf(random, []string{http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions})
	}
	if oneIn(random, 2) {
		q.header.Set("If-None-Match", oneOf(random, []string{etag, etag, `"other"`, "W/" + etag, `"other", ` + etag, "*", strings.Trim(etag, `"`)}))
	}
	return withExtras(random, q)
}
