package invariant

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// The functions in this file find the answer that misled a controller. It is a 404, or a discovery
// document that lacks a kind. A controller sends no request for a kind that no document has listed
// to it.

// The controllers whose work the invariants judge (k8s.io/kubernetes,
// cmd/kube-controller-manager/names).
const (
	garbageCollector    = "generic-garbage-collector"
	namespaceController = "namespace-controller"
	quotaController     = "resourcequota-controller"
	migrator            = "storage-version-migrator-controller"
)

// metadataInformers is the client by which the garbage collector and the quota controller list and
// watch all resources (k8s.io/kubernetes, cmd/kube-controller-manager/app,
// CreateControllerContext).
const metadataInformers = "metadata-informers"

// senders is a predicate over the senders of requests.
type senders func(*history.Request) bool

// controllerNamed matches the requests of a controller, and those of its informers. Its user name
// ends with its name, or its user agent if all controllers share one user.
func controllerNamed(name string) senders {
	names := []string{name}
	if name == garbageCollector || name == quotaController {
		names = append(names, metadataInformers)
	}
	return func(q *history.Request) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.HasSuffix(q.User, ":"+name) || strings.HasSuffix(q.Agent, "/"+name) || strings.HasSuffix(q.Agent, ":"+name)
		})
	}
}

// sentLike matches the requests of the sender of a request, and nothing if q is nil. Agents are
// compared only if both are known.
func sentLike(q *history.Request) senders {
	return func(other *history.Request) bool {
		return q != nil && q.User == other.User && (q.Agent == other.Agent || q.Agent == "" || other.Agent == "")
	}
}

// wrongAnswer is an answer that misled a controller.
type wrongAnswer struct {
	request *history.Request
	about   history.GVR // the resource that the answer denies or does not list
	// document is true if the answer is a discovery document. basis then says how it is known what
	// the document does not list, because logs do not have the bodies of answers.
	document bool
	basis    string
	// mechanism is the part of the proxy that the document tests.
	mechanism Mechanism
}

// denied returns the last 404 in a time with which a server told a sender that the whole resource,
// or an object with that name, does not exist. It is nil if there is no such 404.
func (f *Facts) denied(to senders, gvr history.GVR, name string, during window) *wrongAnswer {
	var last *wrongAnswer
	for q := range f.sentBefore(during.to) {
		about := q.GVR.Group == gvr.Group && q.GVR != (history.GVR{}) && (q.GVR.Resource == gvr.Resource || q.GVR.Resource == "") &&
			(q.GVR.Resource != "" || q.GVR.Version == "" || q.GVR.Version == gvr.Version) && (q.Name == name || q.Name == "") && q.Subresource == ""
		if about && q.Status == http.StatusNotFound && !q.Rerouted && during.overlaps(window{q.Start, q.End}) && to(q) {
			last = &wrongAnswer{request: q, about: gvr}
		}
	}
	return last
}

// sentBefore returns the requests of other clients that were sent before a time.
func (f *Facts) sentBefore(end history.Time) iter.Seq[*history.Request] {
	return func(yield func(*history.Request) bool) {
		for i := range f.requests {
			if f.requests[i].Start >= end || !yield(&f.requests[i]) {
				return
			}
		}
	}
}

// unlisted returns the first discovery document that certainly lacked the resource, in every
// version, while a server served it. It looks at the document that the sender knew at the beginning
// of a time, and at those that the sender got in that time. It returns nil if there is no such
// document.
func (f *Facts) unlisted(to senders, gvr history.GVR, during window) *wrongAnswer {
	path := pathGroups
	if gvr.Group == "" {
		path = pathCore
	}
	var got []*history.Request
	for q := range f.sentBefore(during.to) {
		asked, _, _ := strings.Cut(q.Path, "?")
		if asked != path || q.Rerouted || q.Verb != "get" || q.Status != http.StatusOK && q.Status != http.StatusNotModified || !to(q) {
			continue
		}
		if q.End <= during.from {
			got = got[:0] // replaced by this one
		}
		got = append(got, q)
	}
	for _, q := range got {
		if basis, lacks := f.lacks(q, path, gvr); lacks && f.servedElsewhere(q, gvr) {
			return &wrongAnswer{request: q, about: gvr, document: true, basis: basis, mechanism: MechanismDiscovery}
		}
	}
	return nil
}

// undescribed returns the last document of the resource's group version that a sender got in a
// time, if the server sent it without the resource, although another server served the resource in
// that version. It is nil if the last such document had the resource, because then no document
// misled the sender. Released servers send only what they serve themselves in such a document
// (k8s.io/apiserver, pkg/util/peerproxy, WrapHandler). So undescribed is nil for other subjects,
// and if a peer handled the request.
func (f *Facts) undescribed(to senders, gvr history.GVR, during window) *wrongAnswer {
	if f.run.Subject != "builtin" && f.run.Subject != "none" {
		return nil
	}
	versions := f.versionsOf(gvr)
	var last *wrongAnswer
	for q := range f.sentBefore(during.to) {
		asked, _, _ := strings.Cut(q.Path, "?")
		v := slices.IndexFunc(versions, func(g history.GVR) bool { return asked == "/apis/"+g.Group+"/"+g.Version })
		if v < 0 || q.Verb != "get" || q.Status != http.StatusOK || q.Rerouted || !during.overlaps(window{q.Start, q.End}) || !to(q) {
			continue
		}
		last = nil
		about := versions[v]
		if len(f.byID[q.ID]) == 1 && f.byName[q.Server].surelyLacks(key{GVR: about}, window{q.Start, q.End}) && f.servedElsewhere(q, about) {
			basis := fmt.Sprintf("%s does not serve it itself, and nothing adds what others serve to this document", q.Server)
			last = &wrongAnswer{request: q, about: about, document: true, basis: basis, mechanism: MechanismGroupDocument}
		}
	}
	return last
}

// servedElsewhere reports whether any server certainly served the resource when the request was
// answered.
func (f *Facts) servedElsewhere(q *history.Request, gvr history.GVR) bool {
	return slices.ContainsFunc(f.versionsOf(gvr), func(g history.GVR) bool {
		return slices.ContainsFunc(f.servers, func(s *server) bool {
			return f.resource(key{GVR: g}).during(s, window{q.Start, q.End}).claim == claimYes
		})
	})
}

// versionsOf are the versions of a resource that any document of the run lists.
func (f *Facts) versionsOf(gvr history.GVR) []history.GVR {
	out := []history.GVR{}
	for _, d := range f.documents {
		for _, r := range d.Resources {
			if r.Group == gvr.Group && r.Resource == gvr.Resource && !slices.Contains(out, r.GVR) {
				out = append(out, r.GVR)
			}
		}
	}
	slices.SortFunc(out, func(a, b history.GVR) int { return cmp.Compare(a.Version, b.Version) })
	return out
}

// alike is the longest time between a controller's request for a document and a request of the load
// for the same document that tells what the controller got.
const alike = 5 * time.Second

// lacks reports whether a document that a server sent certainly did not list the resource, and how
// that is known. The server itself must not serve the resource. If there is a proxy, the documents
// that the load got from that server just before and just after must not list it either.
func (f *Facts) lacks(q *history.Request, path string, gvr history.GVR) (basis string, lacks bool) {
	versions, asked := f.versionsOf(gvr), f.byName[q.Server]
	for _, g := range versions {
		if !asked.surelyLacks(key{GVR: g}, window{q.Start, q.End}) {
			return "", false
		}
	}
	if f.run.Subject == "none" {
		return fmt.Sprintf("%s does not serve it itself, and nothing adds what others serve", q.Server), true
	}
	lists := func(d *document) bool {
		return slices.ContainsFunc(versions, func(g history.GVR) bool { return d.lists[key{GVR: g}] })
	}
	var before, after *observation
	for _, o := range f.observations {
		doc, ok := f.merged(o.op)
		switch {
		case !ok || doc == nil || o.op.Server != q.Server || o.op.Path != path:
		case o.op.End <= q.Start && o.op.End >= q.Start-alike:
			before = o
		case o.op.Start >= q.End && o.op.Start <= later(q.End, alike) && after == nil:
			after = o
		}
	}
	var told []string
	for _, near := range []struct {
		o    *observation
		when string
	}{{before, "before"}, {after, "after"}} {
		if near.o == nil {
			continue
		}
		if doc, _ := f.merged(near.o.op); lists(doc) {
			return "", false
		}
		apart := max(q.Start-near.o.op.End, near.o.op.Start-q.End)
		told = append(told, fmt.Sprintf("%s %s", clock(apart), near.when))
	}
	if len(told) == 0 {
		return "", false
	}
	return fmt.Sprintf("%s does not serve it itself, and sent the load documents without it %s", q.Server, strings.Join(told, " and ")), true
}

// lastOf is the later of two answers, either of which may be nil.
func lastOf(a, b *wrongAnswer) *wrongAnswer {
	if a == nil || b != nil && b.request.Start > a.request.Start {
		return b
	}
	return a
}

// keptFrom returns the answer that kept a controller from seeing an object, or from learning of its
// kind, from an event until a time. It is nil if the history has no such answer. A 404 for an
// object that no longer exists is not a wrong answer.
func (f *Facts) keptFrom(controller string, o *object, event, until history.Time) *wrongAnswer {
	by, gvr := controllerNamed(controller), f.gvrOf(o.first())
	existed := window{o.first().At, until}
	if !o.remains() {
		existed.to = min(until, o.last().At)
	}
	return lastOf(f.denied(by, gvr, o.first().Name, existed), f.unlisted(by, gvr, window{event, until}))
}

// Misled is the answer that misled a controller: the controller asked the server, the server gave
// this answer, and Evidence.Cause is the consequence.
type Misled struct {
	// Controller is the user that the server saw. Agent is its User-Agent; empty if no log has it.
	Controller string `json:"controller"`
	Agent      string `json:"agent,omitempty"`
	// Server is the server that gave the answer, and At the time at which it was asked.
	Server string       `json:"server"`
	At     history.Time `json:"at"`
	// ID is the Audit-ID. Verb, Path and Status are from the server's log.
	ID     string `json:"id"`
	Verb   string `json:"verb"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	// Lacks is the resource that the answer denies (404) or does not list (a discovery document).
	Lacks history.GVR `json:"lacks"`
	// Basis says for people how it is known what a discovery document does not list. It is empty for
	// a 404.
	Basis string `json:"basis,omitempty"`
}

// shown is the answer as evidence.
func (a *wrongAnswer) shown() *Misled {
	q := a.request
	return &Misled{
		Controller: q.User, Agent: q.Agent, Server: q.Server, At: q.Start, ID: q.ID, Verb: q.Verb, Path: q.Path, Status: q.Status,
		Lacks: a.about, Basis: a.basis,
	}
}

// sentence tells of a discovery document that misled its reader.
func (a *wrongAnswer) sentence() string {
	q := a.request
	return fmt.Sprintf("%s had asked %s for %s at %s (Audit-ID %s). The answer, %d, did not list %s: %s.",
		sender(q), q.Server, q.Path, clock(q.Start), q.ID, q.Status, a.about, a.basis)
}
