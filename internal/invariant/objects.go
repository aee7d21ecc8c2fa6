package invariant

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// object is an API object of one UID, with its changes in etcd in the order of their revisions. It
// has at least one.
type object struct {
	uid     string
	changes []history.Object
}

// objects holds all objects of a run, with the indexes that invariants need.
type objects struct {
	all        []*object // by their first change
	byUID      map[string]*object
	namespaces map[string][]*object // by name, in the order in which they were made
	in         map[string][]*object // the objects that were in namespaces of a name
	dependents map[string][]*object // by the UID of an owner that they had at any time
	newest     int64                // the last revision
}

// indexObjects sorts the changes by object.
func (f *Facts) indexObjects(h *history.History) {
	f.objects = objects{byUID: map[string]*object{}, namespaces: map[string][]*object{}, in: map[string][]*object{},
		dependents: map[string][]*object{}}
	for _, change := range slices.SortedFunc(slices.Values(h.Objects), changeOrder) {
		if change.UID == "" {
			continue
		}
		f.finish = max(f.finish, change.At)
		f.objects.newest = max(f.objects.newest, change.Revision)
		o := f.objects.byUID[change.UID]
		if o == nil {
			o = &object{uid: change.UID}
			f.objects.byUID[change.UID] = o
			f.objects.all = append(f.objects.all, o)
			switch {
			case isNamespace(change):
				f.objects.namespaces[change.Name] = append(f.objects.namespaces[change.Name], o)
			case change.Namespace != "":
				f.objects.in[change.Namespace] = append(f.objects.in[change.Namespace], o)
			}
		}
		o.changes = append(o.changes, change)
	}
	for _, o := range f.objects.all {
		for _, change := range o.changes {
			for _, owner := range change.Owners {
				if all := f.objects.dependents[owner.UID]; len(all) == 0 || all[len(all)-1] != o {
					f.objects.dependents[owner.UID] = append(all, o)
				}
			}
		}
	}
}

func changeOrder(a, b history.Object) int {
	rank := func(o history.Object) int {
		if o.Gone {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key), cmp.Compare(a.UID, b.UID), cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// atEnd is a revision after all others.
const atEnd = int64(math.MaxInt64)

func isNamespace(o history.Object) bool { return o.Kind == "Namespace" && o.APIVersion == "v1" }

// at returns the object as of a revision, and whether it existed then.
func (o *object) at(revision int64) (state history.Object, exists bool) {
	for _, change := range o.changes {
		if change.Revision > revision {
			break
		}
		state, exists = change, !change.Gone
	}
	return state, exists
}

func (o *object) first() history.Object { return o.changes[0] }
func (o *object) last() history.Object  { return o.changes[len(o.changes)-1] }

// remains reports whether the object existed at the end of the history.
func (o *object) remains() bool { return !o.last().Gone }

// deletion is the change that began the deletion of the object, or removed it at once. ok is false
// if there is no such change, or if the run found the object in that state.
func (o *object) deletion() (change history.Object, ok bool) {
	i := slices.IndexFunc(o.changes, func(c history.Object) bool { return c.Deleting || c.Gone })
	if i < 1 {
		return history.Object{}, false
	}
	return o.changes[i], true
}

// owner is the object to which a reference of a dependent leads. ok is false if etcd never had the
// object, or if the reference is wrong. An owner must be in the namespace of its dependents or in
// none, and must have the kind and the name in the reference. Otherwise the garbage collector
// treats the owner as absent (k8s.io/kubernetes, pkg/controller/garbagecollector).
func (f *Facts) owner(dependent history.Object, reference history.Owner) (*object, bool) {
	o := f.objects.byUID[reference.UID]
	if o == nil {
		return nil, false
	}
	is := o.first()
	return o, is.Kind == reference.Kind && is.Name == reference.Name && groupOf(is.APIVersion) == groupOf(reference.APIVersion) &&
		(is.Namespace == "" || is.Namespace == dependent.Namespace)
}

// livingOwner is an owner of the dependent that exists at a revision and is not being deleted.
func (f *Facts) livingOwner(dependent history.Object, revision int64) (*object, bool) {
	for _, reference := range dependent.Owners {
		if o, ok := f.owner(dependent, reference); ok {
			if state, exists := o.at(revision); exists && !state.Deleting {
				return o, true
			}
		}
	}
	return nil, false
}

// ownerUnknown reports whether the history cannot say if an owner exists, because the history does
// not record leases and events.
func ownerUnknown(dependent history.Object) bool {
	return slices.ContainsFunc(dependent.Owners, func(r history.Owner) bool { return r.Kind == "Lease" || r.Kind == "Event" })
}

// owned reports whether the object ever had an owner that ever existed in etcd.
func (f *Facts) owned(o *object) bool {
	return slices.ContainsFunc(o.changes, func(change history.Object) bool {
		return slices.ContainsFunc(change.Owners, func(r history.Owner) bool { _, ok := f.owner(change, r); return ok })
	})
}

// namespaceOf is the namespace of that name at a revision: the last one made until then.
func (f *Facts) namespaceOf(name string, revision int64) (state history.Object, exists, known bool) {
	for _, o := range f.objects.namespaces[name] {
		if o.first().Revision <= revision {
			state, exists = o.at(revision)
			known = true
		}
	}
	return state, exists, known
}

// groupOf is the API group of an apiVersion.
func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "" // the core group
	}
	return group
}

// gvrOf is the resource of an object. It uses the resource that the run's discovery documents name
// for the object's kind. If there is none, it uses the resource in the object's key in etcd.
func (f *Facts) gvrOf(o history.Object) history.GVR {
	return f.gvrOfKind(o.APIVersion, o.Kind, resourceInKey(o))
}

func (f *Facts) gvrOfKind(apiVersion, kind, unknown string) history.GVR {
	group, version := groupOf(apiVersion), apiVersion[strings.LastIndex(apiVersion, "/")+1:]
	found := history.GVR{Group: group, Version: version, Resource: unknown}
	candidates := f.kinds[groupKind{group, kind}]
	for _, g := range candidates {
		if g.Version == version {
			return g
		}
	}
	if len(candidates) > 0 {
		return candidates[0]
	}
	return found
}

// resourceInKey is the resource in a key: /registry/RESOURCE/NAMESPACE/NAME for most built-in
// types, /registry/GROUP/RESOURCE/NAMESPACE/NAME for others.
func resourceInKey(o history.Object) string {
	parts := strings.Split(o.Key, "/")
	after := 2 // the name, and the resource before it
	if o.Namespace != "" {
		after = 3
	}
	if len(parts) < after {
		return ""
	}
	return parts[len(parts)-after]
}

// groupKind is a kind in any version.
type groupKind struct{ group, kind string }

// indexKinds finds the resources of kinds in all documents.
func (f *Facts) indexKinds() {
	f.kinds = map[groupKind][]history.GVR{}
	for _, d := range f.documents {
		for _, r := range d.Resources {
			if k := (groupKind{r.Group, r.Kind}); r.Kind != "" && r.Resource != "" && !slices.Contains(f.kinds[k], r.GVR) {
				f.kinds[k] = append(f.kinds[k], r.GVR)
			}
		}
	}
	for _, all := range f.kinds {
		slices.SortFunc(all, func(a, b history.GVR) int { return cmp.Compare(a.String(), b.String()) })
	}
}

// titled names an object for people: "ConfigMap n/x".
func titled(o history.Object) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
