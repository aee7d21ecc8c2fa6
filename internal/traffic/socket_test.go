package traffic

import (
	"io"
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

func TestARequestForSPDYIsRecorded(t *testing.T) {
	record := newLedger()
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != workload.ProtocolSPDY || r.Header.Get("Connection") != "Upgrade" || r.ProtoMajor != 1 {
			t.Errorf("got %s with %v, want a request for SPDY by HTTP/1.1", r.Proto, r.Header)
		}
		switch r.URL.Path {
		case "/ignored": // kube-apiserver answers this way for a watch
			for range 3 {
				_, _ = io.WriteString(w, "{}\n")
			}
		case "/switched":
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
			_ = buffered.Flush()
			_ = conn.Close()
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{}\n")
		default:
			respond(w, http.StatusUnauthorized, runtime.ContentTypeJSON, `{"kind":"Status","apiVersion":"v1","reason":"Unauthorized"}`)
		}
	})
	c := connect(t, server, record)
	for _, path := range []string{"/ignored", "/switched", "/broken", "/refused"} {
		verb := "watch"
		if path == "/switched" {
			verb = "get"
		}
		c.ask(t, workload.Request{Verb: verb, Path: path, For: workload.Timeout, Upgrade: true, Protocol: workload.ProtocolSPDY})
	}
	all := record.all()
	if len(all) != 4 {
		t.Fatalf("%d operations were recorded, want 4", len(all))
	}
	for i, want := range []history.Received{
		{Status: http.StatusOK, Events: 3, Body: history.BodyEvents},
		{Status: http.StatusSwitchingProtocols},
		{Status: http.StatusOK, Events: 1, Body: history.BodyEvents, Failure: history.FailureReset},
		{Status: http.StatusUnauthorized, Reason: "Unauthorized", Body: history.BodyStatus},
	} {
		got := history.Received{Status: all[i].Status, Events: all[i].Events, Body: all[i].Body, Failure: all[i].Failure, Reason: all[i].Reason}
		if got != want || all[i].Client != history.ClientSPDY {
			t.Errorf("%s: recorded %+v by %s, want %+v", all[i].Path, got, all[i].Client, want)
		}
	}
}

// A status in YAML must be read like a status in JSON: a missing object must not be recorded as a
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
