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
	// LargeListPerLane is how many objects each lane makes. Lists are then some hundred long.
	LargeListPerLane = 130
	// largePage is how many objects a page has. It divides no number of them.
	largePage = 37
	// padding makes lists larger than what is buffered on the way; in bytes for each object.
	padding = 700
)

// largeList is many objects of one resource, which are made once and then only listed: of the first
// resource that not all servers serve and that objects can be made of. Nothing else of the load
// creates or deletes any object of that resource.
type largeList struct {
	resource *history.Resource // nil until there is one
	size     int
}

// use chooses the resource, for good.
func (l *largeList) use(probes []Probe) {
	for _, p := range probes {
		if l.resource == nil && p.Class == Somewhere && p.Subresource == "" && !p.Resource.Namespaced &&
			slices.Contains(p.Resource.Verbs, "list") && creatable(p.Resource) {
			r := clone(p.Resource)
			l.resource = &r
		}
	}
}

// owns reports whether the resource is that of the list, in whatever version.
func (l *largeList) owns(r history.Resource) bool {
	return l.resource != nil && l.resource.Group == r.Group && l.resource.Resource == r.Resource
}

func (l *largeList) growing() bool { return l.resource != nil && l.size < LargeListPerLane }

// grow makes the next object, as a user who may.
func (l *largeList) grow(lane, user string) Request {
	l.size++
	create := about(*l.resource, fmt.Sprintf("skewproof-large-list-%s-%03d", lane, l.size), "create")
	create.User = user
	create.Body = object(*l.resource, create.Name, metadata{
		Annotations: map[string]string{"skewproof.dev/padding": strings.Repeat("p", padding)}, Labels: map[string]string{LargeListLabel: "yes"},
	})
	return create
}

// list asks for all objects, at once or page by page.
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
