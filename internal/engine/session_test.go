package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// kept is a cluster whose etcd is a list. Its servers never become ready, so no requests are sent
// to them.
type kept struct {
	Reusable
	keys    []string
	removed []string
	acts    []string
	expires string // a key that vanishes after a few reads
	looks   int
}

func (k *kept) Keys(context.Context) ([]string, error) {
	if k.looks++; k.looks > 2 {
		k.keys = slices.DeleteFunc(k.keys, func(key string) bool { return key == k.expires })
	}
	return slices.Clone(k.keys), nil
}

func (k *kept) RemoveKeys(_ context.Context, keys []string) error {
	k.removed = append(k.removed, keys...)
	k.keys = slices.DeleteFunc(k.keys, func(key string) bool { return slices.Contains(keys, key) })
	return nil
}

func (k *kept) Forget() error      { k.acts = append(k.acts, "forget"); return nil }
func (k *kept) Serving(string) int { return 0 }
func (k *kept) StartServer(_ context.Context, name, version string) error {
	k.acts = append(k.acts, "start "+name+" "+version)
	return nil
}

// sessionOn is a session on a cluster of one server. These keys exist at its beginning.
func sessionOn(k *kept, keys ...string) *Session {
	return &Session{
		cluster: k, servers: []string{"a"},
		options: Options{Status: func(string, ...any) {}}, began: existing{keys: keys, served: map[string]string{}, builtIn: map[string]bool{}}, patience: time.Second,
	}
}

// runnerOf carries out a plan in a session. Its history is lost.
func runnerOf(s *Session, plan scenario.Plan) *runner {
	return newRunner(plan, s.cluster, &witness{Recorder: history.NewRecorder(io.Discard, history.Run{}, nil)}, s.options)
}

// reset gets the cluster of a session ready for a plan.
func reset(t *testing.T, s *Session, plan scenario.Plan) (left []string) {
	t.Helper()
	err := s.clear(t.Context())
	if err == nil {
		left, err = s.restart(t.Context(), runnerOf(s, plan))
	}
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// If a schedule leaves something behind, the session ends, and the next schedule is not carried
// out.
func TestASessionWithALeftoverIsNotReused(t *testing.T) {
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1"}}}
	for name, c := range map[string]struct {
		keys    []string
		expires string
		want    string // part of the differences
	}{
		"nothing":                  {[]string{"/registry/x"}, "", ""},
		"an object":                {[]string{"/registry/stable.example.com/widgets/left", "/registry/x"}, "", "widgets/left is in etcd, and was not"},
		"an object is missing":     {nil, "", "/registry/x is not in etcd any more"},
		"a lease that expires":     {[]string{"/registry/peerserverleases/old", "/registry/x"}, "/registry/peerserverleases/old", ""},
		"the address of a server":  {[]string{masterLeases + "198.19.0.1", "/registry/x"}, "", ""},
		"an APIService of servers": {[]string{apiServices + "v1.storage.k8s.io", "/registry/x"}, "", ""},
		"another APIService":       {[]string{apiServices + "v1.stable.example.com", "/registry/x"}, "", "v1.stable.example.com is in etcd"},
		"what the load created":    {[]string{"/registry/configmaps/skewproof/skewproof-a-12", "/registry/x"}, "", ""},
		"what looks like a load":   {[]string{"/registry/configmaps/skewproof/skewproof-a", "/registry/x"}, "", "skewproof-a is in etcd"},
		"the Pod of a Deployment":  {[]string{"/registry/pods/skewproof/skewproof-a-12-5ffcf999b7-x7k2p", "/registry/x"}, "", ""},
		"the Pod of another":       {[]string{"/registry/pods/skewproof/other-12-5ffcf999b7-x7k2p", "/registry/x"}, "", "other-12-5ffcf999b7-x7k2p is in etcd"},
		"the EndpointSlice of a gateway": {
			[]string{"/registry/endpointslices/" + extension.ServiceNamespace + "/" + extension.ServiceName + "-x7k2p", "/registry/x"}, "", "",
		},
		"another EndpointSlice": {
			[]string{"/registry/endpointslices/" + extension.ServiceNamespace + "/other-x7k2p", "/registry/x"}, "", "other-x7k2p is in etcd",
		},
		"the Service of a gateway": {[]string{"/registry/services/specs/" + extension.ServiceNamespace + "/" + extension.ServiceName, "/registry/x"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kept{keys: c.keys, expires: c.expires}
			s := sessionOn(k, "/registry/x")
			s.began.learn("v2", history.Document{Resources: []history.Resource{{GVR: history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "x"}}}})
			if got := strings.Join(reset(t, s, plan), "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("left: %q, want %q", got, c.want)
			}
			if !slices.Equal(k.acts, []string{"forget", "start a v1"}) {
				t.Errorf("it did %q", k.acts)
			}
		})
	}
}

// A server whose proxy is off has no endpoint lease. Everything else must be there.
func TestAServerWithASetupMayHaveNoEndpointLease(t *testing.T) {
	const lease = "/registry/peerserverleases/apiserver-a"
	for name, c := range map[string]struct {
		missing string
		setup   *scenario.Setup
		left    int
	}{
		"the proxy is off":                  {lease, &scenario.Setup{Proxy: scenario.Off}, 0},
		"no server has a setup":             {lease, nil, 1},
		"the address of a server":           {masterLeases + "198.19.0.1", nil, 0},
		"an identity lease":                 {"/registry/leases/kube-system/apiserver-a", &scenario.Setup{Proxy: scenario.Off}, 1},
		"an object whose name is like that": {"/registry/configmaps/skewproof/peerserverleases", &scenario.Setup{Proxy: scenario.Off}, 1},
	} {
		k := &kept{keys: []string{"/registry/x"}}
		s := sessionOn(k, c.missing, "/registry/x")
		s.patience = time.Millisecond
		left, err := s.compare(t.Context(), []scenario.Server{{Name: "a", Version: "v1", Setup: c.setup}})
		if err != nil || len(left) != c.left {
			t.Errorf("%s: left %q, %v; want %d", name, left, err, c.left)
		}
	}
}

func TestASessionCarriesOutNothingOnALeftover(t *testing.T) {
	k := &kept{keys: []string{"/registry/left"}}
	s := sessionOn(k)
	var file bytes.Buffer
	left, _, err := s.CarryOut(t.Context(), scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1"}}}, 1, func() *history.Recorder {
		if !slices.Equal(k.acts, []string{"forget"}) {
			t.Errorf("the history begins after %q", k.acts)
		}
		return history.NewRecorder(&file, history.Run{}, nil)
	})
	if len(left) != 1 || err != nil {
		t.Errorf("left %q, error %v, want one leftover and nothing carried out", left, err)
	}
	if h, err := history.Read(&file); err != nil || len(h.Steps) > 0 || !h.End.Complete {
		t.Errorf("its history is %+v, error %v", h, err)
	}
}

func TestSettledWaitsUntilNothingChanges(t *testing.T) {
	k := &kept{keys: []string{"/registry/a", "/registry/b"}, expires: "/registry/b"}
	s := sessionOn(k)
	s.patience = time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	if _, err := s.settled(ctx); err == nil || !strings.Contains(err.Error(), "no time") {
		t.Errorf("got %v, want the reason why it was ended", err)
	}
}

func TestWhatChanged(t *testing.T) {
	d := func(names ...string) (doc history.Document) {
		for _, n := range names {
			doc.Resources = append(doc.Resources, history.Resource{GVR: history.GVR{Version: "v1", Resource: n}, Verbs: []string{"get"}, Subresources: []history.Subresource{{Name: "status"}}})
		}
		return doc
	}
	was, is := strings.Join(names(d("pods", "nodes")), "\n"), strings.Join(names(d("nodes", "secrets")), "\n")
	const want = "also v1/secrets [get], also v1/secrets/status [], not v1/pods [get], not v1/pods/status []"
	if got := changed(was, is); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Join(names(d("nodes", "pods")), "\n") != was {
		t.Error("the order of a document matters")
	}
}

// What a plan has made for controllers is removed: its namespace, what is in it, and cluster-scoped
// owners. What another plan has made is not.
func TestASessionRemovesTheObjectsOfItsLastPlan(t *testing.T) {
	objects := scenario.Objects{Name: "made", Dependents: 1}
	last := scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1"}}}
	last.CreateObjects(objects)
	k := &kept{keys: []string{
		"/registry/clustertrustbundles/made-owner", "/registry/configmaps/default/made-up", "/registry/configmaps/made/kube-root-ca.crt",
		"/registry/namespaces/made", "/registry/namespaces/unmade", "/registry/serviceaccounts/unmade/default", "/registry/x",
	}}
	s := sessionOn(k, "/registry/x")
	s.last = runnerOf(s, last)
	left := reset(t, s, scenario.Plan{Servers: last.Servers})
	want := []string{
		"/registry/namespaces/unmade is in etcd, and was not", "/registry/serviceaccounts/unmade/default is in etcd, and was not",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

// directed is a cluster with controllers, which make a key some reads after they are healthy.
type directed struct {
	kept
	made string // "" if they make none
}

func (d *directed) Start(context.Context) error { return nil }
func (d *directed) StartControllers(_ context.Context, version, through string) error {
	d.acts = append(d.acts, "start controllers "+version+" through "+through)
	if d.made != "" {
		d.keys = append(d.keys, d.made)
	}
	return nil
}
func (d *directed) StartCandidate(context.Context, string, string) error { return nil }
func (d *directed) StopControllers(context.Context) error {
	d.acts = append(d.acts, "stop controllers")
	return nil
}
func (d *directed) Serving(string) int { return len(d.acts) } // so that it has to be stopped
func (d *directed) StopServer(_ context.Context, name string) error {
	d.acts = append(d.acts, "stop "+name)
	return errors.New("that is enough")
}

// Controllers end when they cannot reach a server, so they stop before the servers do.
func TestControllersStopBeforeTheServers(t *testing.T) {
	d := &directed{}
	s := sessionOn(&d.kept)
	s.cluster = d
	d.acts = []string{"ran"}
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1"}}}
	s.last = runnerOf(s, plan)
	if err := s.clear(t.Context()); err == nil || !strings.Contains(err.Error(), "that is enough") {
		t.Fatal(err)
	}
	if want := []string{"ran", "stop controllers", "stop a"}; !slices.Equal(d.acts, want) {
		t.Errorf("it did %q, want %q", d.acts, want)
	}
}

// What exists at the beginning of a session includes what controllers make. They are healthy before
// they make it.
func TestASessionWaitsUntilControllersWork(t *testing.T) {
	for made, why := range map[string]string{
		"/registry/serviceaccounts/kube-system/generic-garbage-collector": "",
		"/registry/serviceaccounts/default/generic-garbage-collector":     "has no service account",
		"": "has no service account",
	} {
		d := &directed{made: made}
		s := sessionOn(&d.kept)
		s.cluster = d
		err := s.startControllers(t.Context(), "v1.36.3")
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("they make %q: %v, want %q", made, err, why)
		}
		if want := []string{"start controllers v1.36.3 through a"}; !slices.Equal(d.acts, want) {
			t.Errorf("it did %q, want %q", d.acts, want)
		}
	}
	s := sessionOn(&kept{})
	if err := s.startControllers(t.Context(), "v1.36.3"); err == nil || !strings.Contains(err.Error(), "choose backend local") {
		t.Errorf("on a cluster without controllers: %v", err)
	}
}
