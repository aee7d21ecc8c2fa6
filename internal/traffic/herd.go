package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	// herdPerLane is how many objects each lane makes. Lists are then some hundred long.
	herdPerLane = 130
	// herdPage is how many objects of them a page has. It divides no number of them.
	herdPage = 37
	// herdWool is how many bytes each object has beside what it must have: lists are then larger than what is buffered on the way.
	herdWool = 700

	herdLabel = "skewproof.dev/herd"
)

// herd is many objects of one resource, which are made once and then only listed: of the first resource that not all servers serve and that
// objects can be made of. Nothing else of the load creates or deletes any of that resource. Not safe for concurrent use.
type herd struct {
	lane     string
	resource *history.Resource // nil until there is one
	size     int
}

// use chooses the resource, for good.
func (h *herd) use(probes []Probe) {
	for _, p := range probes {
		if h.resource == nil && p.Class == Somewhere && p.Subresource == "" && !p.Resource.Namespaced &&
			slices.Contains(p.Resource.Verbs, "list") && (&objects{}).canWrite(p.Resource) {
			r := clone(p.Resource)
			h.resource = &r
		}
	}
}

// keeps reports whether the resource is the herd's, in whatever version.
func (h *herd) keeps(r history.Resource) bool {
	return h.resource != nil && h.resource.Group == r.Group && h.resource.Resource == r.Resource
}

func (h *herd) growing() bool { return h.resource != nil && h.size < herdPerLane }

// grow makes the next object, as the first identity, which may.
func (h *herd) grow() action {
	h.size++
	o := &objects{}
	object := o.object(*h.resource, fmt.Sprintf("skewproof-herd-%s-%03d", h.lane, h.size))
	object.SetLabels(map[string]string{managedByLabel: managedByValue, herdLabel: "yes"})
	object.SetAnnotations(map[string]string{"skewproof.dev/wool": strings.Repeat("w", herdWool)})
	create := byDynamic(*h.resource, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Create(ctx, object, metav1.CreateOptions{})
	})
	create.first = true
	return create
}

// list asks for all of them, at once or page by page.
func (h *herd) list(random *rand.Rand) (action, bool) {
	if h.resource == nil {
		return action{}, false
	}
	limit := 0
	if random.IntN(2) == 0 {
		limit = herdPage
	}
	return pages(*h.resource, limit), true
}

// pages lists a herd, limit objects at a time; 0 is all at once.
func pages(r history.Resource, limit int) action {
	return action{client: ClientREST, send: func(ctx context.Context, c *client) {
		before, next := 0, ""
		for {
			request := c.rest.Get().AbsPath(path(r.GVR, "", "", "")).MaxRetries(0).Param("labelSelector", herdLabel+"=yes")
			if limit > 0 {
				request.Param("limit", fmt.Sprint(limit))
			}
			if next != "" {
				request.Param("continue", next)
			}
			body, err := request.Do(context.WithValue(ctx, itemsBefore{}, before)).Raw()
			if err != nil {
				return
			}
			page, ok := readPage(body)
			if !ok || page.next == "" {
				return
			}
			before, next = before+page.items, page.next
		}
	}}
}

// itemsBefore is the key of a context that says how many objects the pages before had.
type itemsBefore struct{}

type page struct {
	items int
	next  string // token of the next page
}

// readPage reads a list in JSON. It is false for a body that is no list, or not a whole one.
func readPage(body []byte) (page, bool) {
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &list) != nil {
		return page{}, false
	}
	return page{len(list.Items), list.Metadata.Continue}, true
}

// countItems notes how long a list by label was.
func countItems(op *history.Operation, ctx context.Context, body []byte) {
	if op.Verb != "list" || op.Status != 200 || !strings.Contains(op.Path, "labelSelector=") {
		return
	}
	page, ok := readPage(body)
	if !ok {
		return
	}
	before, _ := ctx.Value(itemsBefore{}).(int)
	op.Items, op.More = before+page.items, page.next != ""
}
