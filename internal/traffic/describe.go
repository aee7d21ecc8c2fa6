package traffic

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// requestInfo is the API machinery's own reading of a path, so that operations and servers agree on what was asked.
var requestInfo = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// describe says what a request is about, as far as it can be told before it is sent.
func describe(req *http.Request) history.Operation {
	a := attemptOf(req.Context())
	op := history.Operation{Client: a.request.Sender(), Purpose: a.purpose, Path: req.URL.RequestURI()}
	info, err := requestInfo.NewRequestInfo(req)
	if err != nil {
		op.Verb = strings.ToLower(req.Method)
		return op
	}
	op.Verb = info.Verb
	accept := req.Header.Get("Accept")
	if !info.IsResourceRequest {
		switch path := req.URL.Path; {
		case path == workload.OpenAPIv2, path == workload.OpenAPIv3, strings.HasPrefix(path, workload.OpenAPIv3+"/"):
			op.Verb = history.VerbOpenAPI
		case strings.HasPrefix(path, "/apis/"): // the document of one group, or of one of its versions
			group, version, _ := strings.Cut(strings.Trim(path[len("/apis/"):], "/"), "/")
			op.GVR = history.GVR{Group: group, Version: version}
		case path != "/apis" && path != "/api":
		case !strings.Contains(accept, workload.AcceptAggregated):
			op.Verb = history.VerbLegacy
		case strings.Contains(accept, workload.AcceptNoPeer):
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
	op.GVR = history.GVR{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	op.Subresource, op.Namespace, op.Name = info.Subresource, info.Namespace, info.Name
	return op
}
