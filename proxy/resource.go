package proxy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// ServerID is the identity of a kube-apiserver: the name of its identity lease. If two servers have
// the same identity because their hosts have the same name, the second one has a [DuplicateID].
type ServerID string

// duplicateMark stands between identity and address. No lease's name contains it.
const duplicateMark = "@"

// DuplicateID is the ServerID of a second server with the same identity. It contains the server's
// address.
func DuplicateID(identity ServerID, address string) ServerID {
	return identity + duplicateMark + ServerID(address)
}

// Identity is the identity without the address of a [DuplicateID], which clients must not see.
func (id ServerID) Identity() ServerID {
	identity, _, _ := strings.Cut(string(id), duplicateMark)
	return ServerID(identity)
}

// Resource is the resource that a request asks for. The empty Group is the core group.
type Resource struct {
	Group, Version, Resource, Subresource string
}

// GroupVersion is the group and version of the resource.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// root is the document that lists the resource.
func (r Resource) root() Root {
	if r.Group == "" {
		return RootCore
	}
	return RootGroups
}

// String is "group/version resource/subresource", without the parts that are empty.
func (r Resource) String() string {
	s := strings.TrimSuffix(r.GroupVersion().String(), "/") // a whole group has no version
	if r.Resource != "" {
		s += " " + r.Resource
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	return s
}

// Kind says how a request is routed.
type Kind int

const (
	// KindOther is served where it arrives: health, metrics, version, /openapi/v2.
	KindOther Kind = iota
	// KindResource is a request for a resource or subresource.
	KindResource
	// KindDiscovery is a request for a group or version: /apis/<group>, /apis/<group>/<version>,
	// /api/<version>, and the same paths below /openapi/v3. Its Resource.Resource is empty. For a
	// group, Resource.Version is empty too.
	KindDiscovery
)

// Request is the part of a request that [Table.Decide] needs. The zero value is served where it
// arrives.
type Request struct {
	Kind     Kind
	Resource Resource
	// Rerouted: an authenticated peer sent the request, so it is answered here (KEP-4020: at most
	// one hop).
	Rerouted bool
	// Repeatable: the request may be sent again even if it may have been carried out (RFC 9110,
	// 9.2.2).
	Repeatable bool
}

// requestInfo parses requests as kube-apiserver does.
var requestInfo = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RequestFor returns the Kind and Resource of a request, from its RequestInfo and the path of its
// URL.
func RequestFor(info *apirequest.RequestInfo, path string) Request {
	if info.IsResourceRequest {
		return Request{Kind: KindResource, Resource: Resource{
			Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		}}
	}
	if r, ok := discoveryPath(path); ok {
		return Request{Kind: KindDiscovery, Resource: r}
	}
	return Request{}
}

// discoveryPath reads /apis/<group>, /apis/<group>/<version>, /api/<version> and the same paths
// below /openapi/v3, with or without a slash at the end.
func discoveryPath(path string) (Resource, bool) {
	path = strings.TrimSuffix(path, "/")
	path = strings.TrimPrefix(path, "/openapi/v3")
	parts := strings.Split(path, "/")
	switch {
	case len(parts) < 3 || parts[0] != "" || slices.Contains(parts[1:], ""):
		return Resource{}, false
	case parts[1] == "api" && len(parts) == 3:
		return Resource{Version: parts[2]}, true
	case parts[1] == "apis" && len(parts) == 3:
		return Resource{Group: parts[2]}, true
	case parts[1] == "apis" && len(parts) == 4:
		return Resource{Group: parts[2], Version: parts[3]}, true
	}
	return Resource{}, false
}
