package workload

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// discovery chooses a request for a discovery document. Most are for the merged document. A quarter
// of these are conditional: if the document is still the one that the server last gave, the server
// answers 304. A few requests are for local documents and older forms.
func (c *Chooser) discovery() Request {
	if c.Profile == scenario.DiscoveryTraffic && c.Choices.IntN(2) == 0 {
		return c.rareDiscovery()
	}
	merged := Request{Verb: history.VerbDiscovery, Path: "/apis"}
	switch n := c.Choices.IntN(100); {
	case n < 55:
	case n < 75:
		merged.Cached = CachedLast
	case n < 90 || len(c.groups) == 0:
		merged.Path = "/api"
	case n < 95:
		return c.group(false)
	default:
		return c.group(true)
	}
	return merged
}

// group returns a request for the document of one group, or of one of its versions.
func (c *Chooser) group(version bool) Request {
	g := c.groups[c.Choices.IntN(len(c.groups))]
	r := Request{Verb: "get", GVR: g, Path: "/apis/" + g.Group + "/" + g.Version}
	if !version {
		r.GVR.Version, r.Path = "", "/apis/"+g.Group
	}
	return r
}

// rareDiscovery returns a request of less usual clients: for the server's own view, for forms
// without aggregation, for OpenAPI, or the requests that kubectl makes because of the merged
// document. OpenAPI 2 is large.
func (c *Chooser) rareDiscovery() Request {
	older := Request{Verb: history.VerbLegacy, Path: [...]string{"/apis", "/api"}[c.Choices.IntN(2)]}
	openAPI := func(path string) Request { return Request{Verb: history.VerbOpenAPI, Path: path, Accept: mediaJSON} }
	const many = 1 << 20 // a remainder of a number below it is as good as a choice among a few
	switch n := c.Choices.IntN(1000); {
	case n < 250:
		older.Verb = history.VerbNoPeer
	case n < 400:
	case n < 450:
		older.Accept = acceptLegacyProtobuf
	case n < 500:
		older.Accept = acceptBeta
	case n < 600:
		return Request{Verb: history.VerbDiscovery, Path: "/apis", Cached: CachedAny, Pick: c.Choices.IntN(many)}
	case n < 800:
		return Request{Verb: history.VerbDiscovery, Path: "/apis", Cached: CachedLast, Then: ThenPreferred, Pick: c.Choices.IntN(many)}
	case n < 900:
		return openAPI(OpenAPIv3)
	case n < 904:
		return openAPI(OpenAPIv2)
	case len(c.groups) > 0:
		g := c.groups[c.Choices.IntN(len(c.groups))]
		r := Request{Verb: "get", GVR: g, Path: "/apis/" + g.Group + "/" + g.Version, Accept: mediaJSON}
		if c.Choices.IntN(2) != 0 {
			r.GVR.Version, r.Path = "", "/apis/"+g.Group
		}
		if c.Choices.IntN(3) == 0 {
			return openAPI(OpenAPIv3 + "/apis/" + g.Group + "/" + g.Version)
		}
		return r
	}
	return older
}
