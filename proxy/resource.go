package proxy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// ServerID is the identity of a kube-apiserver: the name of its identity lease. If two servers have the same identity, because their
// hosts have the same name, a [DuplicateID] stands for the second.
type ServerID string

// duplicateMark stands between an identity and an address. No name of a lease contains it.
const duplicateMark = "@"

// DuplicateID is the ServerID of a second server that has the identity of another, told apart by its address.
func DuplicateID(identity ServerID, address string) ServerID {
	return identity + duplicateMark + ServerID(address)
}

// Identity is the identity without the address of a [DuplicateID], for clients and records, which must not show addresses.
func (id ServerID) Identity() ServerID {
	identity, _, _ := strings.Cut(string(id), duplicateMark)
	return ServerID(identity)
}

// Resource is what a request asks for. The empty Subresource is the resource itself; the empty Group is the core group.
type Resource struct {
	Group, Version, Resource, Subresource string
}

// GroupVersion is the group and version of the resource.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// String is "group/version resource/subresource", without the parts that are empty.
func (r Resource) String() string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(r.GroupVersion().String(), "/")) // of a whole group
	if r.Resource != "" {
		b.WriteString(" " + r.Resource)
	}
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	return b.String()
}

// Kind says how a request is routed.
type Kind int

const (
	// KindOther is anything else, which is served where it arrives: health, metrics, version, /openapi/v2.
	KindOther Kind = iota
	// KindResource is a request for a resource or subresource.
	KindResource
	// KindDiscovery is a request for the description of a group or of a version: /apis/<group>, /apis/<group>/<version>,
	// /api/<version>, and the same below /openapi/v3. Its Resource.Resource is empty, and for a group its Version too.
	KindDiscovery
)

// Request is what [Table.Decide] needs to know of a request. The zero value is a request that is served where it arrives.
type Request struct {
	Kind     Kind
	Resource Resource
	// Rerouted is true if an authenticated peer has sent the request, so that it must be answered here (KEP-4020: at most one hop).
	Rerouted bool
	// Repeatable is true if the request may be sent again although it may have been carried out (RFC 9110, 9.2.2).
	Repeatable bool
}

// RequestFor returns the Kind and Resource of a request. info is what the API machinery parsed; path is the URL's path.
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

// discoveryPath reads /apis/<group>, /apis/<group>/<version>, /api/<version> and the same below /openapi/v3, with or without a
// slash at the end. What is longer, shorter or has empty parts is something else.
func discoveryPath(path string) (Resource, bool) {
	path = strings.TrimSuffix(path, "/")
	path = strings.TrimPrefix(path, "/openapi/v3")
	parts := strings.Split(path, "/")
	for _, part := range parts[1:] {
		if part == "" {
			return Resource{}, false
		}
	}
	switch {
	case len(parts) < 3 || parts[0] != "":
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
