package proxy

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lacksPath is the answer of a kube-apiserver for the path of a resource that it does not serve.
func lacksPath() *http.Response {
	return says(http.StatusNotFound, "404 page not found\n", "Content-Type", "text/plain; charset=utf-8")
}

// A server without this proxy cannot say that it refuses a hop. Its 404 for the path means the
// same.
func TestDirectPeerThatDoesNotServe(t *testing.T) {
	const pod = "/apis/new.k8s.io/v1/proxy/namespaces/default/gadgets/x"
	status := func(details string) *http.Response {
		return says(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404`+details+`}`,
			"Content-Type", "application/json")
	}
	object := func() *http.Response { return status(`,"details":{"name":"x","group":"new.k8s.io","kind":"gadgets"}`) }
	served := func() *http.Response { return says(http.StatusOK, "{}", "Content-Type", "application/json") }
	for name, c := range map[string]struct {
		policy   Policy
		direct   bool // peer a; peer b has a proxy
		path     string
		a, b     *http.Response
		code     int
		outcomes []string
	}{
		"it does not, and another does":            {Reference(), true, gadgetsPath, lacksPath(), served(), http.StatusOK, []string{"a refused", "b answered"}},
		"nor does the other":                       {Reference(), true, gadgetsPath, lacksPath(), says(http.StatusServiceUnavailable, "", RefusedHeader, "true"), http.StatusServiceUnavailable, []string{"a refused", "b refused"}},
		"it lacks the whole group (v1.38)":         {Reference(), true, gadgetsPath, status(""), served(), http.StatusOK, []string{"a refused", "b answered"}},
		"it has the group, and another does":       {Reference(), true, gadgetsPath, status(`,"details":{}`), served(), http.StatusOK, []string{"a refused", "b answered"}},
		"it does, and there is no object":          {Reference(), true, gadgetsPath + "/x", object(), served(), http.StatusNotFound, []string{"a answered"}},
		"it fails":                                 {Reference(), true, gadgetsPath, says(http.StatusServiceUnavailable, ""), served(), http.StatusServiceUnavailable, []string{"a answered"}},
		"a backend behind it says so":              {Reference(), true, pod, lacksPath(), served(), http.StatusNotFound, []string{"a answered"}},
		"it answers as text":                       {Reference(), true, gadgetsPath, says(http.StatusOK, "x", "Content-Type", "text/plain"), served(), http.StatusOK, []string{"a answered"}},
		"it refuses as text":                       {Reference(), true, gadgetsPath, says(http.StatusForbidden, "x", "Content-Type", "text/plain"), served(), http.StatusForbidden, []string{"a answered"}},
		"its 404 has no type":                      {Reference(), true, gadgetsPath, says(http.StatusNotFound, "x"), served(), http.StatusNotFound, []string{"a answered"}},
		"its 404 has no valid type":                {Reference(), true, gadgetsPath, says(http.StatusNotFound, "x", "Content-Type", "text/plain; ="), served(), http.StatusNotFound, []string{"a answered"}},
		"it has a proxy, which refuses":            {Reference(), false, gadgetsPath, says(http.StatusServiceUnavailable, "", RefusedHeader, "true"), served(), http.StatusOK, []string{"a refused", "b answered"}},
		"it has upstream's proxy, and does not":    {Reference(), false, gadgetsPath, lacksPath(), served(), http.StatusOK, []string{"a refused", "b answered"}},
		"it does not, and upstream gets the event": {Upstream137(), true, gadgetsPath, lacksPath(), served(), http.StatusNotFound, []string{"a answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			events := append(capablePeers(nil, "a", "b"), PeerAddress{ID: "a", Address: "a.test:6443", Direct: c.direct})
			s := newShell(t, c.policy, events, transportFunc(func(r *http.Request) (*http.Response, error) {
				if r.Header.Get(HopHeader) == "" || r.Header.Get("X-Remote-User") != "alice" {
					t.Errorf("a peer got %v: want the mark of a hop, and the user", r.Header)
				}
				return map[string]*http.Response{"a.test:6443": c.a, "b.test:6443": c.b}[r.URL.Host], nil
			}))
			if got := s.ask("GET", c.path, ""); got.Code != c.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, c.code)
			}
			if diff := cmp.Diff(c.outcomes, s.seen.outcomes()); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// The bodies are recorded from kube-apiservers, and say in their names what is missing.
func TestLacksResourceReadsRecordedAnswers(t *testing.T) {
	media := map[string]string{".json": "application/json", ".table": "application/json", ".protobuf": "application/vnd.kubernetes.protobuf"}
	files, err := filepath.Glob("../internal/answer/testdata/notfound/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded bodies: %v", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := media[filepath.Ext(file)]
		if !bytes.HasPrefix(body, []byte("{")) && !bytes.HasPrefix(body, protobufMagic) {
			kind = "text/plain; charset=utf-8"
		}
		answer := says(http.StatusNotFound, string(body), "Content-Type", kind)
		want := strings.HasPrefix(filepath.Base(file), "resource.")
		if got := lacksResource(answer); got != want {
			t.Errorf("%s: lacks the resource: %t, want %t; body: %q", filepath.Base(file), got, want, body)
		}
		if left, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(left, body) {
			t.Errorf("%s: a reader finds %q (%v), want the whole body", filepath.Base(file), left, err)
		}
	}
}

// A proxy may start or stop to serve at the same address.
func TestDirectChangesAtOneAddress(t *testing.T) {
	known := NewTable(Reference(), "self")
	for _, e := range capablePeers(nil, "a") {
		known = known.Observe(e)
	}
	before, _ := known.Peer("a")
	direct := known.Observe(PeerAddress{ID: "a", Address: before.Address, Direct: true})
	if after, _ := direct.Peer("a"); !after.Direct || after.Address != before.Address || after.Learned != before.Learned {
		t.Errorf("%+v became %+v: want only Direct changed", before, after)
	}
	if direct.Observe(PeerAddress{ID: "a", Address: before.Address, Direct: true}) != direct {
		t.Error("the same again is a change")
	}
	if again, _ := direct.Observe(PeerAddress{ID: "a", Address: before.Address}).Peer("a"); again.Direct {
		t.Error("it stays direct when a proxy publishes the address")
	}
}
