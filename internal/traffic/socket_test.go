package traffic

import (
	"net/http"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

func TestAnUpgradedWatchIsRecorded(t *testing.T) {
	upgrader := websocket.Upgrader{}
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watched" {
			respond(w, http.StatusNotFound, runtime.ContentTypeJSON, `{"kind":"Status","apiVersion":"v1","reason":"NotFound","message":"pods \"x\" not found","details":{"name":"x","kind":"pods"}}`)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for range 3 {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{}`))
		}
		if r.URL.Query().Get("break") == "" {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		}
	})
	c := connect(t, server, record)
	c.ask(t, workload.Request{Verb: "get", Path: "/watched", Upgrade: true})
	c.ask(t, workload.Request{Verb: "get", Path: "/watched", Query: "break=yes", For: workload.Timeout, Upgrade: true})
	c.ask(t, workload.Request{Verb: "get", Path: "/none", Upgrade: true})
	all := record.all()
	if len(all) != 3 {
		t.Fatalf("%d operations were recorded, want 3", len(all))
	}
	if op := all[0]; op.Status != http.StatusSwitchingProtocols || op.Events != 3 || op.Failure != history.FailureNone || op.Client != workload.ClientSocket {
		t.Errorf("a watch to its end: %+v", op)
	}
	if op := all[1]; op.Events != 3 || op.Failure != history.FailureReset {
		t.Errorf("a watch that was broken off long before it was to end: %+v", op)
	}
	if op := all[2]; op.Status != http.StatusNotFound || op.Missing != history.MissingObject {
		t.Errorf("what was not upgraded: %+v", op)
	}
}

// A status in YAML says as much as one in JSON: that an object is missing must not be taken for a
// missing resource.
func TestAStatusIsReadInWhateverForm(t *testing.T) {
	record := newLedger()
	c := connect(t, newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusNotFound, runtime.ContentTypeYAML, "kind: Status\napiVersion: v1\nreason: NotFound\nmessage: x not found\ndetails:\n  name: x\n  kind: pods\n")
	}), record)
	c.ask(t, workload.Request{Verb: "get", GVR: history.GVR{Version: "v1", Resource: "pods"}, Name: "x", Accept: runtime.ContentTypeYAML})
	if op := record.only(t); op.Missing != history.MissingObject || op.Reason != "NotFound" || op.MediaType != runtime.ContentTypeYAML || op.Accept != runtime.ContentTypeYAML {
		t.Errorf("recorded %+v", op)
	}
}
