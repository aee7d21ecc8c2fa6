package workload

import (
	"net/url"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// dryRun is the query of a write that must change nothing.
const dryRun = "dryRun=All"

// matchesNothing selects no object. It is the second protection, in addition to dryRun, when
// collections are deleted.
var matchesNothing = url.Values{"labelSelector": {"skewproof.invalid/sweep=matches-nothing"}}.Encode()

// Sweep returns a request for each verb of each resource and subresource of a document, in its
// order. If verbs is not nil, only these verbs are used. Every request is harmless on a cluster in
// use: a read returns one object or none, and a write is a dry run, on an object that does not
// exist and with a body that validation rejects. The requests only test whether they are routed.
//
// This is also true for resources that act and do not store. A review of nothing is rejected.
// Bindings, evictions, tokens and connections (exec, attach, portforward) fail because the object
// is missing, before the server dials anything. Only the proxy subresources are left out. Their
// answers depend on the endpoint behind them (503 for a service that does not exist), and look like
// a fault of the server.
func Sweep(doc history.Document, verbs []string) []Request {
	var all []Request
	add := func(r history.Resource, subresource string, offered []string) {
		for _, verb := range offered {
			if verbs != nil && !slices.Contains(verbs, verb) {
				continue
			}
			if request, ok := visit(r, subresource, verb); ok {
				all = append(all, request)
			}
		}
	}
	for _, r := range doc.Resources {
		add(r, "", r.Verbs)
		for _, s := range r.Subresources {
			add(r, s.Name, s.Verbs)
		}
	}
	return all
}

// visit returns a request for a verb. It returns false for a proxy subresource and for unknown
// verbs.
func visit(r history.Resource, subresource, verb string) (Request, bool) {
	if subresource == "proxy" {
		return Request{}, false
	}
	namespace := namespaceOf(r)
	one := Request{Verb: verb, GVR: r.GVR, Subresource: subresource, Namespace: namespace, Name: absentName, Client: ClientREST}
	collection := Request{Verb: verb, GVR: r.GVR, Client: ClientREST}
	named := `{"metadata":{"name":"` + absentName + `"}}`
	if namespace != "" {
		named = `{"metadata":{"name":"` + absentName + `","namespace":"` + namespace + `"}}`
	}
	switch verb {
	case "get":
		return one, true
	case "list":
		collection.Query = "limit=1"
		return collection, true
	case "watch":
		collection.Query, collection.For = matchesNothing, time.Second
		return collection, true
	case "create":
		// A subresource is created at an object, a resource in a collection.
		one.Query, one.Body = dryRun, named
		if subresource == "" {
			one.Name, one.Body = "", `{}`
		}
		if valid, ok := validBody(r, subresource); ok {
			one.Body = valid
		}
		return one, true
	case "update":
		one.Query, one.Body = dryRun, named
		return one, true
	case "patch", "delete":
		one.Query = dryRun
		return one, true
	case "deletecollection":
		collection.Namespace, collection.Query = namespace, dryRun+"&"+matchesNothing
		return collection, true
	default:
		return Request{}, false
	}
}

// validBody returns a valid body to create one of the few resources whose handlers answer 500 to an
// empty object, with only "target.name: Required value" or "unsupported role reference kind" (seen
// with 1.36 and 1.37). This is not a fault of routing and must not look like one. The objects in
// these bindings do not exist.
func validBody(r history.Resource, subresource string) (string, bool) {
	const rbac = "rbac.authorization.k8s.io"
	switch {
	case r.Group == "" && (r.Resource == "bindings" && subresource == "" || r.Resource == "pods" && subresource == "binding"):
		return `{"metadata":{"name":"` + absentName + `"},"target":{"kind":"Node","name":"` + absentName + `"}}`, true
	case r.Group == rbac && (r.Resource == "rolebindings" || r.Resource == "clusterrolebindings"):
		return `{"roleRef":{"apiGroup":"` + rbac + `","kind":"ClusterRole","name":"` + absentName + `"}}`, true
	default:
		return "", false
	}
}
