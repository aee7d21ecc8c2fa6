package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
)

// apiserver is the apiserver behind the proxy of a server. It serves everything that its version's
// document lists, and the extensions that it has seen.
type apiserver struct{ *server }

var statuses = func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}()

// storageTimeout is how long a request waits for etcd before it gives up.
const storageTimeout = 3 * time.Second

var errStorage = errors.New("etcdserver: request timed out")

// sleep waits for d in the task of the request. It returns earlier if the requester no longer waits
// for the answer.
func (x *exchange) sleep(d time.Duration) {
	for until := x.s.loop.Now() + d; x.s.loop.Now() < until && x.context.err == nil; {
		x.task.Sleep(until - x.s.loop.Now())
	}
}

// object names an object in etcd. An object that is served in several versions is one object.
type object struct{ group, resource, name string }

// ServeHTTP answers a request as a kube-apiserver without the feature would.
func (a apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest {
		a.serveDiscovery(w, r)
		return
	}
	x := r.Context().Value(exchangeKey{}).(*exchange)
	if refusal := a.authorize(x.seenAs(), info); refusal != nil {
		a.fail(w, r, refusal)
		return
	}
	verbs, ok := a.serves(resourceKey{info.APIGroup, info.APIVersion, info.Resource, info.Subresource})
	switch {
	case !ok:
		http.Error(w, "404 page not found", http.StatusNotFound) // the mux has no handler for it
		return
	case !slices.Contains(verbs, info.Verb):
		a.fail(w, r, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb))
		return
	}
	if info.Verb != "list" && info.Verb != "watch" && !a.reachEtcd(x) {
		a.fail(w, r, apierrors.NewInternalError(errStorage))
		return
	}
	a.carryOut(w, r, x, info)
}

// reachEtcd waits until etcd answers or the request times out. It reports whether etcd answers.
func (a apiserver) reachEtcd(x *exchange) bool {
	l := a.s.link(a.index, a.s.etcdEnd())
	switch {
	case l.blocked():
		l.countAffected()
		x.sleep(storageTimeout)
		return false
	case len(l.on) > 0:
		x.sleep(a.s.delay(l, fault.Up, headerBytes) + a.s.delay(l, fault.Down, headerBytes))
	}
	return true
}

// carryOut carries out a request for an object or a collection.
func (a apiserver) carryOut(w http.ResponseWriter, r *http.Request, x *exchange, info *apirequest.RequestInfo) {
	name := info.Name
	if info.Verb == "create" && name == "" {
		name = x.op.asked.Name
	}
	var body []byte
	if info.Verb == "create" || info.Verb == "update" || info.Verb == "patch" {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil || strings.HasSuffix(r.Header.Get("Content-Type"), "json") && !json.Valid(body) {
			a.fail(w, r, apierrors.NewBadRequest("the body of the request is no JSON"))
			return
		}
	}
	media, ok := readable(r.Header.Get("Accept"))
	if !ok {
		a.fail(w, r, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, info.Verb, schema.GroupResource{}, "",
			"only JSON and YAML are written", 0, true))
		return
	}
	w.Header()["Content-Type"] = media
	o := object{info.APIGroup, info.Resource, name}
	exists, dryRun := a.s.objects[o], strings.Contains(r.URL.RawQuery, "dryRun=All")
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch info.Verb {
	case "list":
		a.list(r, gr).write(w, http.StatusOK)
	case "watch":
		a.watch(w, r, x)
	case "deletecollection":
		success.write(w, http.StatusOK)
	case "create":
		of := info.Subresource != "" // the subresource (a binding, an eviction, a token) needs an existing object
		switch {
		case of && !exists:
			a.fail(w, r, apierrors.NewNotFound(gr, name))
			return
		case !of && dryRun && name == "":
			a.fail(w, r, apierrors.NewInvalid(schema.GroupKind{Group: info.APIGroup, Kind: info.Resource}, name, nil))
			return
		case !of && exists:
			a.fail(w, r, apierrors.NewAlreadyExists(gr, name))
			return
		case !of && !dryRun:
			a.s.objects[o] = true
			a.s.population[gr]++
			if bytes.Contains(body, largeListLabel) {
				a.s.labelled[gr]++
			}
		}
		anObject.write(w, http.StatusCreated)
	case "delete":
		if !exists {
			a.fail(w, r, apierrors.NewNotFound(gr, name))
			return
		}
		if info.Subresource == "" && !dryRun {
			delete(a.s.objects, o)
			a.s.population[gr]--
		}
		anObject.write(w, http.StatusOK)
	default: // get, update, patch
		if !exists {
			a.fail(w, r, apierrors.NewNotFound(gr, name))
			return
		}
		anObject.write(w, http.StatusOK)
	}
}

var largeListLabel = []byte(workload.LargeListLabel)

// listed is an object in a list. It is about as long as the objects that a load makes.
var listed = `{"metadata":{"name":"x","uid":"` + strings.Repeat("0", 36) + `","annotations":{"x":"` + strings.Repeat("x", 300) + `"}},"spec":{}}`

// list returns a list for a client that gives a limit or a label selector. Any other list is empty.
func (a apiserver) list(r *http.Request, gr schema.GroupResource) body {
	if r.URL.RawQuery == "" {
		return emptyList
	}
	query := r.URL.Query()
	switch query.Get("labelSelector") {
	case "":
		return bodyOf(pageOf(a.s.population[gr], listed, query))
	case workload.LargeListLabel + "=yes":
		return bodyOf(pageOf(a.s.labelled[gr], `{}`, query))
	}
	return emptyList
}

// pageOf returns the page of a list that a request asks for.
func pageOf(size int, object string, query url.Values) string {
	from, _ := strconv.Atoi(query.Get("continue"))
	to, next := size, ""
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < size {
		to = from + limit
		next = itoa(to)
	}
	items := strings.TrimSuffix(strings.Repeat(object+",", max(0, to-from)), ",")
	return fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, items)
}

// readable returns a media type that the client can read. It returns false if there is none.
func readable(accept string) ([]string, bool) {
	switch {
	case accept == "", strings.Contains(accept, "json"), strings.Contains(accept, "*/*"):
		return jsonHeader, true
	case strings.Contains(accept, "yaml"):
		return yamlHeader, true
	default:
		return nil, false
	}
}

// bookmark is an event of a watch.
const bookmark = `{"type":"BOOKMARK","object":{}}` + "\n"

// watch sends a bookmark each second until its time is over or the client is gone. It uses a
// WebSocket if the client asks for one.
func (a apiserver) watch(w http.ResponseWriter, r *http.Request, x *exchange) {
	if wantsSocket(r) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			a.fail(w, r, apierrors.NewInternalError(err))
			return
		}
		_, _ = io.WriteString(conn, switching)
		if a.bookmarks(r, x, func() { _, _ = io.WriteString(conn, bookmark) }) {
			_, _ = io.WriteString(conn, closing)
		}
		_ = conn.Close()
		return
	}
	w.Header()["Content-Type"] = []string{"application/json;stream=watch"}
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	a.bookmarks(r, x, func() {
		_, _ = w.Write([]byte(bookmark))
		flusher.Flush()
	})
}

// bookmarks calls send once a second, and reports whether the client listened to the end.
func (a apiserver) bookmarks(r *http.Request, x *exchange, send func()) bool {
	until := a.s.loop.Now() + x.op.lasts
	for a.s.loop.Now() < until && r.Context().Err() == nil && a.streams() {
		x.sleep(min(time.Second, until-a.s.loop.Now()))
		if r.Context().Err() != nil {
			return false
		}
		send()
	}
	return r.Context().Err() == nil
}

// serveDiscovery answers requests for the discovery documents of this server alone, and answers 404
// to all other requests.
func (a apiserver) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/api":
		a.discovery(proxy.RootCore).ServeHTTP(w, r)
	case "/apis":
		a.discovery(proxy.RootGroups).ServeHTTP(w, r)
	default:
		all := a.discovery(proxy.RootGroups)
		name, ok := strings.CutPrefix(path, "/apis/")
		group, version, one := strings.Cut(name, "/")
		if !ok || one && !all.ServeVersion(w, r, group, version) || !one && !all.ServeGroup(w, r, group) {
			http.Error(w, "404 page not found", http.StatusNotFound)
		}
	}
}

func (a apiserver) fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, statuses, schema.GroupVersion{Version: "v1"}, w, r)
}

var jsonHeader, yamlHeader = []string{"application/json"}, []string{"application/yaml"}

// body is the body of an answer, with its length as a header. Both are immutable.
type body struct {
	bytes  []byte
	length []string
}

func bodyOf(s string) body { return body{[]byte(s), []string{itoa(len(s))}} }

// These are answers that are sent often.
var (
	emptyList = bodyOf(`{"kind":"List","apiVersion":"v1","items":[]}`)
	success   = bodyOf(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	anObject  = bodyOf(`{"kind":"Object","apiVersion":"v1"}`)
)

func (b body) write(w http.ResponseWriter, status int) {
	w.Header()["Content-Length"] = b.length
	w.WriteHeader(status)
	_, _ = w.Write(b.bytes)
}

// authorize returns the error if a user is not allowed to make a request, by the user that the
// server believes to be the sender. As on real servers, one user of the load may only read, and a
// node may do what the rules in the server's version say.
func (srv *server) authorize(user string, info *apirequest.RequestInfo) *apierrors.StatusError {
	switch {
	case user == workload.Reader && !slices.Contains(workload.ReadVerbs, info.Verb):
	case user == workload.Node && !srv.nodeMay(info):
	default:
		return nil
	}
	why := fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", user, info.Verb, info.Resource, info.APIGroup)
	return apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, errors.New(why))
}

// nodeMay reports whether a node may make a request. It may do everything if it is not recorded
// what the version permits.
func (srv *server) nodeMay(info *apirequest.RequestInfo) bool {
	s, v := srv.s, srv.version
	permits, known := s.permits[v]
	if !known {
		permits, _, _ = recorded.BehaviourOf(release.Of(v.Name)) // nil if it is not recorded
		s.permits[v] = permits
	}
	kind := recorded.Kind{Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource}
	return permits == nil || slices.Contains(permits.Allowed(recorded.Node, kind), info.Verb)
}

// authorizesNodes is the handler of a kube-apiserver with a proxy of its own. It authorizes a
// request of a node before the proxy may pass it on. Other users have the same rights at every
// server, so it makes no difference where they are authorized.
type authorizesNodes struct {
	*server
	next http.Handler
}

func (a authorizesNodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	if x.seenAs() == workload.Node {
		info, ok := apirequest.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && !a.nodeMay(info) {
			apiserver{a.server}.fail(w, r, a.authorize(workload.Node, info))
			return
		}
	}
	a.next.ServeHTTP(w, r)
}
