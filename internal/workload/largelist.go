package workload

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// LargeListLabel is on each object of a large list, with the value "yes".
const LargeListLabel = "skewproof.dev/large-list"

const (
	// LargeListPerLane is the number of objects that each lane creates. Lists then have some
	// hundred objects.
	LargeListPerLane = 130
	// largePage is the number of objects of a page. The number of objects is not a multiple of it.
	largePage = 37
	// padding makes lists larger than the buffers on the way; in bytes for each object.
	padding = 700
)

// largeList is a list of many objects of one resource. They are created once and then only listed.
// The resource is the first one that not all servers serve and whose objects can be created. No
// other request of the load creates or deletes objects of this resource.
type largeList struct {
	resource *history.Resource // nil until there is one
	size     int
}

// use chooses the resource. It does not change later.
func (l *largeList) use(probes []Probe) {
	for _, p := range probes {
		if l.resource == nil && p.Class == Somewhere && p.Subresource == "" && !p.Resource.Namespaced &&
			slices.Contains(p.Resource.Verbs, "list") && creatable(p.Resource) {
			r := clone(p.Resource)
			l.resource = &r
		}
	}
}

// owns reports whether the resource is that of the list, in any version.
func (l *largeList) owns(r history.Resource) bool {
	return l.resource != nil && l.resource.Group == r.Group && l.resource.Resource == r.Resource
}

func (l *largeList) growing() bool { return l.resource != nil && l.size < LargeListPerLane }

// grow creates the next object, as a user who may do so.
func (l *largeList) grow(lane, user string) Request {
	l.size++
	create := about(*l.resource, fmt.Sprintf("skewproof-large-list-%s-%03d", lane, l.size), "create")
	create.User = user
	create.Body = object(*l.resource, create.Name, metadata{
		Annotations: map[string]string{"skewproof.dev/padding": strings.Repeat("p", padding)}, Labels: map[string]string{LargeListLabel: "yes"},
	})
	return create
}

// list requests all objects, at once or page by page.
func (l *largeList) list(choices Choices) (Request, bool) {
	if l.resource == nil {
		return Request{}, false
	}
	query := url.Values{"labelSelector": {LargeListLabel + "=yes"}}
	if choices.IntN(2) == 0 {
		query.Set("limit", strconv.Itoa(largePage))
	}
	return Request{Verb: "list", GVR: l.resource.GVR, Query: query.Encode(), Then: ThenPages}, true
}
