package informers

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

var configMaps = history.GVR{Version: "v1", Resource: "configmaps"}

// kept is what one informer received. It also signals when the recorder gets more of it.
type kept struct {
	began time.Time

	mu   sync.Mutex
	all  []history.Delivery
	more chan struct{} // closed when there is more
}

func newKept() *kept { return &kept{began: time.Now(), more: make(chan struct{})} }

func (k *kept) Now() history.Time { return time.Since(k.began) }

func (k *kept) Delivery(d history.Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
	close(k.more)
	k.more = make(chan struct{})
}

// until waits for a delivery of that kind and resource version, and returns all deliveries so far.
func (k *kept) until(t *testing.T, kind history.DeliveryKind, resourceVersion string) []history.Delivery {
	t.Helper()
	for {
		k.mu.Lock()
		all, more := slices.Clone(k.all), k.more
		k.mu.Unlock()
		if slices.ContainsFunc(all, func(d history.Delivery) bool { return d.Kind == kind && d.ResourceVersion == resourceVersion }) {
			return all
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("no delivery %s %s: %+v", kind, resourceVersion, all)
		}
	}
}

// change is one event of a watch.
type change struct {
	kind     string // "ADDED", …
	name     string // empty for a bookmark
	revision int
}

func (c change) object() map[string]any {
	m := map[string]any{"resourceVersion": strconv.Itoa(c.revision)}
	if c.name != "" {
		m["name"], m["namespace"], m["uid"] = c.name, "n", "uid-"+c.name
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m}
}

// server answers like a kube-apiserver that cannot stream lists: first a list, then a watch that
// delivers the changes and stays open. It refuses the first requests.
func server(t *testing.T, list []change, at int, refusals int, changes ...change) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	done := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refused := refusals > 0
		refusals--
		mu.Unlock()
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case refused:
			answer(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 404, Reason: "NotFound"})
		case query.Get("sendInitialEvents") == "true":
			answer(w, http.StatusUnprocessableEntity, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 422, Reason: "Invalid"})
		case query.Get("watch") == "true":
			from, _ := strconv.Atoi(query.Get("resourceVersion"))
			for _, c := range changes {
				if c.revision > from {
					_ = json.NewEncoder(w).Encode(map[string]any{"type": c.kind, "object": c.object()})
				}
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-done:
			}
		default:
			items := []any{}
			for _, c := range list {
				items = append(items, c.object())
			}
			answer(w, http.StatusOK, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{"resourceVersion": strconv.Itoa(at)}, "items": items,
			})
		}
	}))
	t.Cleanup(func() {
		close(done)
		s.Close()
	})
	return s
}

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func start(t *testing.T, s *httptest.Server) (*Informers, *kept) {
	t.Helper()
	recorder := newKept()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	identity := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	all, err := Start([]Way{{Server: "b", URL: s.URL}}, []history.GVR{configMaps}, identity, recorder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.Close)
	return all, recorder
}

func TestWhatAnInformerIsToldIsRecorded(t *testing.T) {
	s := server(t, []change{{"", "x", 7}}, 8, 0,
		change{"ADDED", "y", 9}, change{"MODIFIED", "x", 10}, change{"DELETED", "y", 11}, change{"BOOKMARK", "", 12})
	all, recorder := start(t, s)
	recorder.until(t, history.DeliveryBookmark, "12")
	all.Close()
	if err := all.stores[0].Bookmark("13"); err != nil { // a reflector may still be running
		t.Error(err)
	}
	all.Close()
	want := []string{
		"started  []", "failed  []", "listed 8 [n/x uid-x 7]", "added 9 [n/y uid-y 9]", "modified 10 [n/x uid-x 10]", "deleted 11 [n/y uid-y 11]",
		"bookmark 12 []", "ended  []",
	}
	var got []string
	for i, d := range recorder.all {
		var objects []string
		for _, o := range d.Objects {
			objects = append(objects, o.Namespace+"/"+o.Name+" "+o.UID+" "+o.ResourceVersion)
		}
		got = append(got, fmt.Sprintf("%s %s %v", d.Kind, d.ResourceVersion, objects))
		if d.Informer != "v1/configmaps through b" || d.Server != "b" || d.GVR != configMaps || d.Index != i+1 {
			t.Errorf("delivery %d is of %q, index %d: %+v", i+1, d.Informer, d.Index, d)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if d := recorder.all[1]; d.Status != http.StatusUnprocessableEntity {
		t.Errorf("that lists cannot be streamed is recorded as %+v", d)
	}
}

func TestAnInformerThatIsRefusedSaysSo(t *testing.T) {
	s := server(t, []change{{"", "x", 7}}, 8, 2)
	_, recorder := start(t, s)
	var refused []int
	for _, d := range recorder.until(t, history.DeliveryListed, "8") {
		if d.Kind == history.DeliveryFailed {
			refused = append(refused, d.Status)
		}
	}
	if len(refused) < 2 || refused[0] != http.StatusNotFound || refused[1] != http.StatusNotFound {
		t.Errorf("refused with %v, want 404 twice at first", refused)
	}
}

// The records of a real reflector must show whether a server loses an event or sends one twice. A
// server that does neither must not be blamed.
func TestALostAndADoubledEventAreFound(t *testing.T) {
	truth := []change{{"ADDED", "y", 9}, {"MODIFIED", "x", 10}, {"MODIFIED", "y", 11}, {"MODIFIED", "x", 12}}
	for name, c := range map[string]struct {
		sent  []change
		wrong string
	}{
		"all":     {truth, ""},
		"lost":    {slices.Delete(slices.Clone(truth), 2, 3), "an event was lost"},
		"doubled": {slices.Insert(slices.Clone(truth), 2, truth[1]), "an event came twice"},
	} {
		t.Run(name, func(t *testing.T) {
			all, recorder := start(t, server(t, []change{{"", "x", 7}}, 8, 0, c.sent...))
			recorder.until(t, history.DeliveryModified, "12")
			all.Close()
			h := &history.History{Run: history.Run{Servers: []history.Server{{Name: "b"}}}, Deliveries: recorder.all, End: history.End{At: recorder.Now(), Complete: true}}
			for _, c := range append([]change{{"ADDED", "x", 7}}, truth...) {
				h.Objects = append(h.Objects, history.Object{
					Revision: int64(c.revision), Key: "/registry/configmaps/n/" + c.name, APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: c.name, UID: "uid-" + c.name,
				})
			}
			for _, v := range invariant.Judge(h) {
				if v.Name != "NoLostEvents" {
					continue
				}
				if c.wrong == "" && v.Violations != 0 || c.wrong != "" && (v.Violations != 1 || v.Evidence[0].Signature.Wrong != c.wrong) {
					t.Errorf("%d violations, %+v; want %q", v.Violations, v.Evidence, c.wrong)
				}
				return
			}
			t.Fatal("no verdict of NoLostEvents")
		})
	}
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	if _, err := Start([]Way{{Server: "b", URL: "https://%"}}, []history.GVR{configMaps}, &rest.Config{}, newKept()); err == nil {
		t.Error("no error")
	}
}
