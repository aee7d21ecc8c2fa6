package traffic

import (
	"context"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// asKubectl does what kubectl and other clients with a REST mapper do: it asks for merged discovery, unless nothing has changed since it last did,
// takes of some resource the version that the document lists first, and asks the same server for it. which chooses the resource.
func asKubectl(which int) action {
	return action{client: ClientREST, send: func(ctx context.Context, c *client) {
		conditionalDiscovery().send(ctx, c)
		etag := c.record.etag.Load()
		if etag == nil {
			return
		}
		doc, ok := c.record.documentOf(*etag)
		if !ok {
			return
		}
		if r, ok := preferred(doc, which); ok {
			raw{path: path(r.GVR, "", "", ""), query: limit}.action().send(ctx, c)
		}
	}}
}

// preferred is one of the resources that can be listed, in the first version that the document lists of it.
func preferred(doc history.Document, which int) (history.Resource, bool) {
	seen := map[groupResource]bool{}
	var all []history.Resource
	for _, r := range doc.Resources {
		of := groupResource{r.Group, r.Resource}
		if seen[of] {
			continue
		}
		seen[of] = true
		if slices.Contains(r.Verbs, "list") {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return history.Resource{}, false
	}
	return all[which%len(all)], true
}
