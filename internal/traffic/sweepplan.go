package traffic

import (
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// absentName is the object that a sweep asks for. Nothing creates it.
const absentName = "skewproof-sweep-absent"

// matchesNothing selects no object: the second lock, next to dryRun, on deleting collections.
const matchesNothing = "skewproof.invalid/sweep=matches-nothing"

// sweepVisit is one verb of one line of a discovery document, as the request that tries it.
type sweepVisit struct {
	resource    history.GVR
	subresource string
	verb        string
	request     raw
}

// planSweep lists a visit for each verb of each resource and subresource of the document, in its order. Every visit
// can be made on a cluster in use: reads are of one object or of none, writes are dry runs on an object that does not
// exist and with a body that validation refuses. What is learned is whether the request is routed at all.
//
// That also holds for the resources that act instead of store: a review of nothing is refused, and bindings, evictions,
// tokens and connections (exec, attach, portforward) fail on the missing object before anything is dialled. Only the
// proxy subresources are left out: what they answer is about what stands behind them (503 "no endpoints available" for
// a service that does not exist), and reads like a fault of the server.
func planSweep(doc history.Document, verbs []string) []sweepVisit {
	var visits []sweepVisit
	add := func(r history.Resource, subresource string, offered []string) {
		for _, verb := range offered {
			if verbs != nil && !slices.Contains(verbs, verb) {
				continue
			}
			if request, ok := sweepRequest(r, subresource, verb); ok {
				visits = append(visits, sweepVisit{r.GVR, subresource, verb, request})
			}
		}
	}
	for _, r := range doc.Resources {
		add(r, "", r.Verbs)
		for _, s := range r.Subresources {
			add(r, s.Name, s.Verbs)
		}
	}
	return visits
}

// sweepRequest is false for what is not asked: a proxy subresource, or a verb unknown to this package.
func sweepRequest(r history.Resource, subresource, verb string) (raw, bool) {
	if subresource == "proxy" {
		return raw{}, false
	}
	namespace := namespaceOf(r)
	one := path(r.GVR, namespace, absentName, subresource)
	collection := path(r.GVR, "", "", "")
	named := []byte(`{"metadata":{"name":"` + absentName + `"` + inNamespace(namespace) + `}}`)
	switch verb {
	case "get":
		return raw{path: one}, true
	case "list":
		return raw{path: collection, query: map[string]string{"limit": "1"}}, true
	case "watch":
		query := map[string]string{"watch": "true", "timeoutSeconds": "1", "labelSelector": matchesNothing}
		return raw{path: collection, query: query, stream: true}, true
	case "create":
		// A subresource is created of an object, a resource in a collection.
		at, body := one, named
		if subresource == "" {
			at, body = path(r.GVR, namespace, "", ""), []byte(`{}`)
		}
		if valid, ok := validBody(r, subresource); ok {
			body = []byte(valid)
		}
		return raw{method: http.MethodPost, path: at, query: dryRun, header: contentType("application/json"), body: body}, true
	case "update":
		return raw{method: http.MethodPut, path: one, query: dryRun, header: contentType("application/json"), body: named}, true
	case "patch":
		header := contentType("application/merge-patch+json")
		return raw{method: http.MethodPatch, path: one, query: dryRun, header: header, body: []byte(`{}`)}, true
	case "delete":
		return raw{method: http.MethodDelete, path: one, query: dryRun}, true
	case "deletecollection":
		query := map[string]string{"dryRun": "All", "labelSelector": matchesNothing}
		return raw{method: http.MethodDelete, path: path(r.GVR, namespace, "", ""), query: query}, true
	default:
		return raw{}, false
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return `,"namespace":"` + namespace + `"`
}

// validBody is what must be sent to create the few resources whose handlers answer 500 to an empty object, with a bare "target.name:
// Required value" or "unsupported role reference kind" (seen with 1.36 and 1.37): that is no fault of routing and must
// not look like one. What is bound does not exist.
func validBody(r history.Resource, subresource string) (string, bool) {
	switch {
	case r.Group == "" && (r.Resource == "bindings" && subresource == "" || r.Resource == "pods" && subresource == "binding"):
		return `{"metadata":{"name":"` + absentName + `"},"target":{"kind":"Node","name":"` + absentName + `"}}`, true
	case r.Group == rbacGroup && (r.Resource == "rolebindings" || r.Resource == "clusterrolebindings"):
		return `{"roleRef":{"apiGroup":"` + rbacGroup + `","kind":"ClusterRole","name":"` + absentName + `"}}`, true
	default:
		return "", false
	}
}

const rbacGroup = "rbac.authorization.k8s.io"
