package requestlog

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// itself is the user of the requests that a kube-apiserver sends to itself. It sends no such
// request to another server.
const itself = "system:apiserver"

// Requests returns the records of requests that the load did not send: the writes and attempted
// writes of controllers, kubectl and the steps of a run, and their failed reads. load reports
// whether an ID belongs to the load. own is the user of the steps of the run, whose User-Agent is
// [users.Agent]. Requests leaves out other successful reads, except controllers' reads of
// discovery, from which controllers learn what exists. It leaves out requests of servers to
// themselves. It also leaves out requests that do not concern objects: health, reviews of access,
// leases, events and the status of nodes.
func (r Records) Requests(load func(id string) bool, own string) []history.Request {
	agents := map[string]string{} // of a request that was passed on, only the peer's record has the agent
	for _, h := range r.all {
		if h.requested.agent != "" {
			agents[h.Operation] = h.requested.agent
		}
	}
	var out []history.Request
	for _, h := range r.all {
		if h.User == itself || load(h.Operation) {
			continue
		}
		request, ok := h.request()
		if !ok || unrelated(request) || !h.writes() && h.Status < http.StatusBadRequest && !discovers(request) {
			continue
		}
		request.Own = h.User == own && agents[h.Operation] == users.Agent
		out = append(out, request)
	}
	return out
}

// writes reports whether the request should change something.
func (h handled) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, h.requested.verb)
}

// discovers reports whether a controller got a discovery document, or learned that its copy is
// still right. With --use-service-account-credentials, as with kubeadm, every controller is a
// service account in kube-system.
func discovers(r history.Request) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	controller := r.User == "system:kube-controller-manager" || strings.HasPrefix(r.User, "system:serviceaccount:kube-system:")
	ofVersion := r.GVR.Version != "" && r.GVR.Resource == "" // /apis/GROUP/VERSION
	return controller && r.Verb == "get" && (r.Status == http.StatusOK || r.Status == http.StatusNotModified) &&
		(path == "/api" || path == "/apis" || ofVersion)
}

// request returns the record in the form of the history. ok is false if the log has no valid path.
func (h handled) request() (out history.Request, ok bool) {
	u, err := url.ParseRequestURI(h.requested.uri)
	if err != nil {
		return history.Request{}, false
	}
	about := workload.Describe(&http.Request{Method: http.MethodGet, URL: u})
	if about.GVR.Resource == "namespaces" && about.GVR.Group == "" {
		about.Namespace = "" // the path of a namespace looks like the path of its contents
	}
	return history.Request{
		ID: h.Operation, Server: h.Server, Start: h.Start, End: h.End, Status: h.Status, User: h.User, Agent: h.requested.agent,
		Verb: h.requested.verb, GVR: about.GVR, Subresource: about.Subresource, Namespace: about.Namespace, Name: about.Name,
		Path: h.requested.uri, Rerouted: h.Rerouted,
	}, true
}

// unrelated reports whether a request has nothing to do with objects that controllers or users
// need.
func unrelated(r history.Request) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	switch r.GVR.Group {
	case "authentication.k8s.io", "authorization.k8s.io": // reviews, which are not stored
		return true
	case "coordination.k8s.io":
		return r.GVR.Resource == "leases"
	case "events.k8s.io":
		return r.GVR.Resource == "events"
	case "":
		return r.GVR.Resource == "events" || r.GVR.Resource == "nodes" && r.Subresource == "status" ||
			slices.ContainsFunc([]string{"/readyz", "/livez", "/healthz"}, func(health string) bool {
				return path == health || strings.HasPrefix(path, health+"/")
			})
	}
	return false
}
