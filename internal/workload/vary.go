package workload

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// variants are the options with which a request of a verb may be sent, as queries. None of them
// makes a valid request invalid, and none changes which answers are right.
var variants = map[string][]string{
	"get": {"resourceVersion=0", "pretty=true", "timeout=20s"},
	"list": {
		"limit=2", "resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan", "limit=1&timeoutSeconds=20",
		"fieldSelector=metadata.name%3Dx",
		"timeout=20s",
	},
	"watch": {
		"resourceVersion=0", "allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=",
	},
	"create": {
		dryRun, "fieldManager=skewproof", "fieldValidation=Ignore", "fieldValidation=Warn",
		dryRun + "&fieldManager=skewproof&fieldValidation=Warn",
	},
	"update":           {dryRun, "fieldManager=skewproof", "fieldValidation=Warn"},
	"patch":            {dryRun, "fieldManager=skewproof", "fieldValidation=Warn"},
	"delete":           {dryRun, "propagationPolicy=Background", "gracePeriodSeconds=0", "propagationPolicy=Orphan"},
	"deletecollection": {dryRun, "limit=1&" + dryRun},
}

// variedAccepts are Accept headers that every server can satisfy for every resource.
var variedAccepts = []string{
	mediaYAML, acceptProtobuf, "*/*", mediaJSON + ";q=0.5," + mediaYAML + ";q=0.1",
	"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
}

// LargeBody is the length in bytes of the padding of a large object. It is more than the window of
// an HTTP/2 stream, so that the server's flow control matters.
const LargeBody = 100_000

// Vary changes how a request is sent, and not what it is about: its options, the size of its body,
// the transport, or how fast its answer is read. Requests with options of their own, for documents
// and for upgrades keep theirs. seldom says how many of the choices leave out what costs judges
// time: one in so many requests has another media type.
func Vary(r *Request, seldom int, choices Choices) {
	if r.Query != "" || r.Path != "" || r.Upgrade || r.Verb == history.VerbTable {
		return
	}
	switch n := choices.IntN(8); {
	case n < 4:
	case n == 4:
		r.HTTP1 = true
	case n == 5 && r.Verb == "create" && r.Subresource == "" && r.Body == "":
		r.Body = large(r.Name)
	case n == 5 && (r.Verb == "list" || r.Verb == "get"):
		r.Slow = true
	default:
		if all := variants[r.Verb]; len(all) > 0 && !(r.Subresource != "" && r.Verb == "create") {
			r.Query = all[choices.IntN(len(all))]
		}
	}
	if slices.Contains(ReadVerbs[:2], r.Verb) && r.Accept == "" && choices.IntN(seldom) == seldom-1 {
		r.Accept = variedAccepts[choices.IntN(len(variedAccepts))]
	}
}

// large is the smallest possible API object, with a long annotation.
func large(name string) string {
	return `{"metadata":{"name":"` + name + `","annotations":{"skewproof.dev/padding":"` + largePadding + `"}}}`
}

var largePadding = strings.Repeat("p", LargeBody)
