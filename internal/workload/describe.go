package workload

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
)

// RequestInfo parses paths like the API machinery, so that operations and servers agree.
var RequestInfo = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// Describe starts the operation of a request, with its resource and verb as the API machinery
// parses them.
func Describe(req *http.Request) history.Operation {
	op := history.NewOperation()
	op.Path = req.URL.RequestURI()
	info, err := RequestInfo.NewRequestInfo(req)
	if err != nil {
		op.Verb = strings.ToLower(req.Method)
		return op
	}
	op.Verb = info.Verb
	accept := req.Header.Get("Accept")
	if !info.IsResourceRequest {
		switch path := req.URL.Path; {
		case path == OpenAPIv2, path == OpenAPIv3, strings.HasPrefix(path, OpenAPIv3+"/"):
			op.Verb = history.VerbOpenAPI
		case strings.HasPrefix(path, "/apis/"): // the document of one group, or of one of its versions
			group, version, _ := strings.Cut(strings.Trim(path[len("/apis/"):], "/"), "/")
			op.GVR = history.GVR{Group: group, Version: version}
		case path != "/apis" && path != "/api":
		case !strings.Contains(accept, AcceptAggregated):
			op.Verb = history.VerbLegacy
		case strings.Contains(accept, AcceptNoPeer):
			op.Verb = history.VerbNoPeer
		default:
			op.Verb = history.VerbDiscovery
		}
		return op
	}
	if info.Verb == "list" && strings.Contains(accept, "as=Table") {
		op.Verb = history.VerbTable
	}
	op.Accept = answer.Accepted(accept)
	op.ContentType, _, _ = strings.Cut(req.Header.Get("Content-Type"), ";")
	op.GVR = history.GVR{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	op.Subresource, op.Namespace, op.Name = info.Subresource, info.Namespace, info.Name
	return op
}
