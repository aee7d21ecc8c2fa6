package traffic

import "context"

const (
	acceptLegacyProtobuf = "application/vnd.kubernetes.protobuf,application/json"
	acceptBeta           = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

// sleeper asks for the merged document unless it is still some one that it was ever given.
func sleeper(which int) action {
	return action{client: ClientREST, send: func(ctx context.Context, c *client) {
		headers := accept(acceptAggregated)
		if tag, ok := c.record.tag(which); ok {
			headers["If-None-Match"] = tag
		}
		raw{path: "/apis", header: headers}.action().send(ctx, c)
	}}
}

// rareDiscovery is what clients of other ages and kinds ask for: the server's own view, formats without aggregation, OpenAPI, and what kubectl
// makes of the merged document. The whole of OpenAPI 2 is some megabytes.
func (c *chooser) rareDiscovery() action {
	at := func(path, accepted string) action { return raw{path: path, header: accept(accepted)}.action() }
	root := []string{"/apis", "/api"}[c.random.IntN(2)]
	switch n := c.random.IntN(1000); {
	case n < 250:
		return at(root, acceptNoPeer)
	case n < 400:
		return at(root, mediaJSON)
	case n < 450:
		return at(root, acceptLegacyProtobuf)
	case n < 500:
		return at(root, acceptBeta)
	case n < 600:
		return sleeper(c.random.IntN(1 << 20))
	case n < 800:
		return asKubectl(c.random.IntN(1 << 20))
	case n < 900:
		return at(openAPIv3, mediaJSON)
	case n < 904:
		return at(openAPIv2, mediaJSON)
	case len(c.groups) == 0:
		return at(root, mediaJSON)
	}
	g := c.groups[c.random.IntN(len(c.groups))]
	path := "/apis/" + g.group
	if c.random.IntN(2) == 0 {
		path += "/" + g.version
	}
	if c.random.IntN(3) == 0 {
		return at("/openapi/v3/apis/"+g.group+"/"+g.version, mediaJSON)
	}
	return at(path, mediaJSON)
}
