package workload

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// possibleFor returns the requests for a resource that need no object of the load, by its verbs.
func possibleFor(r history.Resource) []Request {
	has := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
	var all []Request
	if has("list") {
		all = append(all,
			Request{Verb: "list", GVR: r.GVR, Namespace: namespaceOf(r), Query: limit, Client: ClientDynamic},
			Request{Verb: history.VerbTable, GVR: r.GVR, Query: limit},
			Request{Verb: "list", GVR: r.GVR, Query: limit, Accept: acceptProtobuf})
	}
	if has("get") {
		all = append(all, get(r, absentName, ""))
	}
	if has("watch") {
		all = append(all, watch(r, 0))
	}
	for _, s := range r.Subresources {
		// A GET of exec, attach, portforward or proxy asks for a connection, not for an object.
		if slices.Contains(s.Verbs, "get") && slices.Contains(s.Verbs, "update") && s.Name != "proxy" {
			all = append(all, get(r, absentName, s.Name))
		}
	}
	if has("patch") {
		all = append(all, patch(r, absentName, "", mergePatch, `{}`))
	}
	if has("delete") {
		all = append(all, about(r, absentName, "delete"))
	}
	if has("create") || len(all) == 0 {
		// Validation rejects an empty object after routing; if it does not, dryRun prevents the
		// creation.
		create, _ := visit(r, "", "create")
		all = append(all, create)
	}
	return all
}

// limit keeps the lists of a long run small. The number of objects in them proves nothing.
const limit = "limit=20"

// absentName is the name of an object that is never created.
const absentName = "skewproof-absent"

// about returns a request of the dynamic client for one object.
func about(r history.Resource, name, verb string) Request {
	return Request{Verb: verb, GVR: r.GVR, Namespace: namespaceOf(r), Name: name, Client: ClientDynamic}
}

func get(r history.Resource, name, subresource string) Request {
	request := about(r, name, "get")
	request.Subresource = subresource
	return request
}

func patch(r history.Resource, name, subresource, mediaType, body string) Request {
	request := about(r, name, "patch")
	request.Subresource, request.ContentType, request.Body = subresource, mediaType, body
	return request
}

// watch returns a short watch. With bookmarks, even a watch of a resource without objects has an
// event to count.
func watch(r history.Resource, d time.Duration) Request {
	request := about(r, "", "watch")
	request.Query, request.For = "allowWatchBookmarks=true", d
	return request
}

func namespaceOf(r history.Resource) string {
	if r.Namespaced {
		return Namespace
	}
	return ""
}

// anySubresource returns a request for a subresource of the probe, each subresource in turn.
func (c *Chooser) anySubresource(p Probe) (Request, bool) {
	if p.Subresource != "" {
		return c.subresource(p), true
	}
	all := slices.DeleteFunc(slices.Clone(p.Resource.Subresources), func(s history.Subresource) bool { return s.Name == "proxy" })
	if len(all) == 0 {
		return Request{}, false
	}
	p.Subresource = all[c.turn(p.Resource.GVR, "*")%len(all)].Name
	return c.subresource(p), true
}

// subresource returns a request for the subresource of a probe, each verb in turn.
func (c *Chooser) subresource(p Probe) Request {
	absent := get(p.Resource, absentName, p.Subresource)
	i := slices.IndexFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource })
	if i < 0 { // it does not exist
		return absent
	}
	verbs := p.Resource.Subresources[i].Verbs
	for range verbs {
		verb := verbs[c.turn(p.Resource.GVR, p.Subresource)%len(verbs)]
		if r, ok := visit(p.Resource, p.Subresource, verb); ok {
			return r
		}
	}
	return absent
}

// PodConnections are the subresources that give a client a connection into a pod. The pod does not
// exist: the test is whether the request for an upgrade is answered like any other request.
var PodConnections = []string{"exec", "attach", "portforward"}

// ProtocolSPDY is the protocol for which older clients ask (k8s.io/apimachinery,
// pkg/util/httpstream/spdy).
const ProtocolSPDY = "SPDY/3.1"

// spdyEvery says that one of so many upgrades of a resource is to SPDY. A server that does not know
// SPDY for a watch answers as if no upgrade was requested.
const spdyEvery = 5

// upgrade requests a watch by WebSocket (k8s.io/apiserver, endpoints/handlers/watch.go). If the
// probe has no watch, it requests a connection to a pod. Some requests are for SPDY.
func (c *Chooser) upgrade(p Probe) Request {
	r := Request{Verb: "watch", GVR: p.Resource.GVR, Query: "resourceVersion=0", Upgrade: true}
	if c.turn(p.Resource.GVR, "upgrade")%spdyEvery == spdyEvery-1 {
		r.Protocol = ProtocolSPDY
	}
	if p.Subresource == "" && slices.Contains(p.Resource.Verbs, "watch") {
		r.For = c.seconds(5)
		return r
	}
	r = Request{
		Verb: "get", GVR: history.GVR{Version: "v1", Resource: "pods"}, Namespace: Namespace, Name: absentName, Upgrade: true,
		Protocol: r.Protocol,
	}
	r.Subresource = PodConnections[c.Choices.IntN(len(PodConnections))]
	if r.Subresource != "portforward" {
		r.Query = "command=true&stdout=true"
	}
	return r
}
