package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/skewproof/skewproof/internal/history"
)

// maxLive bounds the objects of one resource that one lane keeps alive.
const maxLive = 4

// objects makes real objects and lets them live: create, read, change, delete. It assumes that every create succeeds;
// where one did not (the identity may not write, the server was down), what follows meets a missing object, which is as
// good an answer. Not safe for concurrent use.
type objects struct {
	lane   string
	random *rand.Rand
	seq    int
	live   map[history.GVR][]string
}

func newObjects(lane string, random *rand.Rand) *objects {
	return &objects{lane: lane, random: random, live: map[history.GVR][]string{}}
}

// canWrite reports whether objects of the resource can be created.
func (o *objects) canWrite(r history.Resource) bool {
	_, known := templates[groupResource{r.Group, r.Resource}]
	return known && slices.Contains(r.Verbs, "create")
}

// next is the next request in the lives of the objects of r, which must be one that canWrite.
func (o *objects) next(r history.Resource) action {
	live := o.live[r.GVR]
	n := o.random.IntN(100)
	switch {
	case len(live) == 0, len(live) < maxLive && n < 20:
		o.seq++
		name := fmt.Sprintf("skewproof-%s-%d", o.lane, o.seq)
		o.live[r.GVR] = append(live, name)
		return o.create(r, name)
	case len(live) == maxLive && n < 20:
		o.live[r.GVR] = live[1:]
		return o.remove(r, live[0])
	}
	name := live[o.random.IntN(len(live))]
	changes := o.changes(r, name)
	return changes[o.random.IntN(len(changes))]()
}

// changes are the requests that can be made on a living object.
func (o *objects) changes(r history.Resource, name string) []func() action {
	t := templates[groupResource{r.Group, r.Resource}]
	stamp := fmt.Sprintf(`"skewproof.dev/seen":"%d"`, o.random.IntN(1000))
	all := []func() action{
		func() action { return o.get(r, name) },
		func() action { return mergePatch(r, name, []byte(`{"metadata":{"annotations":{`+stamp+`}}}`)) },
		func() action {
			return jsonPatch(r, name, []byte(`[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]`))
		},
		func() action { return strategicPatch(r, name, []byte(`{"metadata":{"labels":{"merged":"yes"}}}`)) },
		func() action { return apply(r, o.object(r, name)) },
	}
	if t.unconditionalUpdate {
		all = append(all, func() action { return o.update(r, name) })
	}
	for _, s := range r.Subresources {
		if body, ok := t.subresources[s.Name]; ok {
			all = append(all,
				func() action { return get(r, name, s.Name) },
				func() action { return mergePatch(r, name, []byte(body), s.Name) })
		}
	}
	return all
}

// object is a valid object of the resource.
func (o *objects) object(r history.Resource, name string) *unstructured.Unstructured {
	t := templates[groupResource{r.Group, r.Resource}]
	object := &unstructured.Unstructured{Object: t.fields(name)}
	object.SetAPIVersion(apiVersion(r.GVR))
	object.SetKind(t.kind)
	object.SetName(name)
	if r.Namespaced {
		object.SetNamespace(Namespace)
	}
	object.SetLabels(map[string]string{managedByLabel: managedByValue})
	return object
}

func apiVersion(g history.GVR) string {
	if g.Group == "" {
		return g.Version
	}
	return g.Group + "/" + g.Version
}
