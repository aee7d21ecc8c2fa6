package invariant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	cleaner   = "system:serviceaccount:kube-system:namespace-controller"
	replicas  = "system:serviceaccount:kube-system:replicaset-controller"
)

var configMaps = history.GVR{Version: "v1", Resource: "configmaps"}

// gadget is an object without a namespace. Only the new version serves its resource. It is the
// owner in most stories.
func gadget(name string) history.Object {
	return history.Object{Key: "/registry/gadgets/" + name, APIVersion: "apps/v2", Kind: "Gadget", Name: name, UID: "uid-" + name}
}

// configMap is an object in namespace n with these owners. Every version serves its resource.
func configMap(name string, owners ...history.Object) history.Object {
	o := history.Object{Key: "/registry/configmaps/n/" + name, APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name, UID: "uid-" + name}
	for _, owner := range owners {
		o.Owners = append(o.Owners, history.Owner{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
	}
	return o
}

func namespace(name string) history.Object {
	return history.Object{Key: "/registry/namespaces/" + name, APIVersion: "v1", Kind: "Namespace", Name: name, UID: "uid-ns-" + name, Finalizers: []string{"kubernetes"}}
}

// within is an object in another namespace.
func within(namespace string, o history.Object) history.Object {
	o.Namespace, o.Key = namespace, strings.Replace(o.Key, "/n/", "/"+namespace+"/", 1)
	return o
}

// put writes objects to etcd at a time.
func (s *story) put(at float64, all ...history.Object) *story {
	for _, o := range all {
		o.At, o.Revision = sec(at), int64(100+len(s.h.Objects))
		s.h.Objects = append(s.h.Objects, o)
	}
	return s
}

// change writes the object of that name again, with a change.
func (s *story) change(at float64, name string, change func(*history.Object)) *story {
	for i := len(s.h.Objects) - 1; i >= 0; i-- {
		if o := s.h.Objects[i]; o.Name == name {
			change(&o)
			return s.put(at, o)
		}
	}
	panic("no object " + name)
}

// mark marks an object as being deleted. Its deletion waits for these finalizers.
func (s *story) mark(at float64, name string, finalizers ...string) *story {
	return s.change(at, name, func(o *history.Object) {
		o.Deleting = true
		o.Finalizers = append(o.Finalizers[:len(o.Finalizers):len(o.Finalizers)], finalizers...)
	})
}

func (s *story) remove(at float64, names ...string) *story {
	for _, name := range names {
		s.change(at, name, func(o *history.Object) { o.Gone = true })
	}
	return s
}

// request adds a server's record of a controller's request, which takes 10 ms.
func (s *story) request(at float64, server, user, verb string, g history.GVR, namespace, name string, status int, options ...func(*history.Request)) *story {
	q := history.Request{
		ID: fmt.Sprintf("request-%04d", len(s.h.Requests)), Server: server, Start: sec(at), End: sec(at + 0.01), Status: status, User: user,
		Agent: "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/abc/" + user, Verb: verb, GVR: g, Namespace: namespace, Name: name,
		Path: "/" + g.String() + "/" + name,
	}
	for _, o := range options {
		o(&q)
	}
	s.h.Requests = append(s.h.Requests, q)
	return s
}

// collects lets the garbage collector send a request every 30 s during a time.
func (s *story) collects(from, to float64) *story {
	for at := from; at <= to; at += 30 {
		s.request(at, "a", "system:serviceaccount:kube-system:"+garbageCollector, "watch", history.GVR{Version: "v1", Resource: "configmaps"}, "", "", 200)
	}
	return s
}

// idle drops all requests of controllers.
func (s *story) idle() *story {
	s.h.Requests = nil
	return s
}

func own(q *history.Request) { q.User, q.Agent, q.Own = "admin", "skewproof", true }
func finalize(q *history.Request) {
	q.Subresource, q.GVR = "finalize", history.GVR{Version: "v1", Resource: "namespaces"}
}

// on is an operation of the load about an object in namespace n.
func on(verb, name string) func(*history.Operation) {
	return func(o *history.Operation) { o.Verb, o.Namespace, o.Name = verb, "n", name }
}

// harmless is a story in which controllers do nothing wrong: one owner stays, another owner goes,
// and a namespace goes.
func (s *story) harmless() *story {
	s.put(10, gadget("kept"), gadget("going"), namespace("doomed"))
	s.put(11, configMap("one", gadget("kept")), configMap("two", gadget("going")), within("doomed", configMap("three")))
	return s.mark(100, "doomed").remove(101, "three").remove(102, "doomed", "going").remove(103, "two")
}

// harmful adds one harm of each kind.
func (s *story) harmful() *story {
	s.put(12, gadget("other"), namespace("lost"), gadget("stuck")).put(13, configMap("four", gadget("other")), within("lost", configMap("five")))
	s.request(104, "b", collector, "get", gadgets, "", "kept", 404).request(104.5, "b", collector, "delete", configMaps, "n", "one", 200).remove(104.51, "one")
	return s.mark(104, "lost").mark(105, "stuck").remove(106, "lost", "other")
}

func TestObjectsAsOfARevision(t *testing.T) {
	s := blank().put(10, gadget("x")).change(20, "x", func(o *history.Object) { o.Finalizers = []string{"f"} }).mark(30, "x").remove(40, "x")
	o := NewFacts(s.h).objects.byUID["uid-x"]
	for revision, want := range map[int64]string{99: "absent", 100: "there", 101: "held", 102: "going", 103: "absent", atEnd: "absent"} {
		state, exists := o.at(revision)
		got := map[bool]string{false: "absent", true: "there"}[exists]
		if exists && len(state.Finalizers) > 0 {
			got = "held"
		}
		if exists && state.Deleting {
			got = "going"
		}
		if got != want {
			t.Errorf("at revision %d: %s, want %s", revision, got, want)
		}
	}
	if change, ok := o.deletion(); !ok || change.Revision != 102 {
		t.Errorf("it began to be deleted with %+v", change)
	}
}

func TestResourcesOfObjects(t *testing.T) {
	pod := history.Resource{GVR: pods, Kind: "Pod"}
	s := blank().served("a", 1, doc("kinds", pod, history.Resource{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "things"}, Kind: "Thing"}))
	f := NewFacts(s.h)
	for _, c := range []struct {
		o    history.Object
		want history.GVR
	}{
		{configMap("x"), configMaps},
		{gadget("x"), gadgets},
		{history.Object{APIVersion: "v1", Kind: "Pod", Key: "/registry/other/n/x", Namespace: "n"}, pods},
		{history.Object{APIVersion: "apps/v2", Kind: "Thing", Key: "/registry/other/x"}, history.GVR{Group: "apps", Version: "v1", Resource: "things"}},
		{history.Object{APIVersion: "g.io/v1", Kind: "Own", Key: "/registry/g.io/owns/n/x", Namespace: "n"}, history.GVR{Group: "g.io", Version: "v1", Resource: "owns"}},
		{history.Object{APIVersion: "v1", Kind: "Odd", Key: "odd"}, history.GVR{Version: "v1"}},
	} {
		if got := f.gvrOf(c.o); got != c.want {
			t.Errorf("%s: %s, want %s", c.o.Key, got, c.want)
		}
	}
}
