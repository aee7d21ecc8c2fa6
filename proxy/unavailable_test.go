package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// decoded decodes an object in any encoding.
func decoded[T runtime.Object](t *testing.T, contentType string, body []byte) T {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		t.Fatalf("the answer is %s: %s", contentType, body)
	}
	object, _, err := info.Serializer.Decode(body, nil, nil)
	decoded, ok := object.(T)
	if err != nil || !ok {
		t.Fatalf("decode %s %q: %T, %v", contentType, body, object, err)
	}
	return decoded
}

func TestUnavailableIsAStatus(t *testing.T) {
	s := newShell(t, Reference(), append(capablePeers(nil, "a", "b"), PeerAddress{ID: "b"}), dead)
	want := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure", Code: 503, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "new.k8s.io/v1 gadgets cannot be served at this time: this server does not serve it, and no peer that does could be reached",
		Details: &metav1.StatusDetails{
			Name: "x", Group: "new.k8s.io", Kind: "gadgets",
			Causes: []metav1.StatusCause{
				{Type: CausePeer, Message: "a: it could not be reached"},
				{Type: CausePeer, Message: "b: its address is not known"},
			},
		},
	}
	for accept, contentType := range map[string]string{
		"":                                    "application/json",
		"application/json":                    "application/json",
		"application/yaml":                    "application/yaml",
		"application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": "application/json",
		"image/png": "application/json",
	} {
		t.Run(accept, func(t *testing.T) {
			got := s.ask("GET", gadgetsPath+"/x", "", "Accept", accept)
			if got.Code != 503 || got.Header().Get("Content-Type") != contentType || got.Header().Get("Retry-After") != "" {
				t.Errorf("%d %v, want 503 in %s", got.Code, got.Header(), contentType)
			}
			if diff := cmp.Diff(want, decoded[*metav1.Status](t, contentType, got.Body.Bytes())); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
	if got := s.ask("HEAD", gadgetsPath+"/x", ""); got.Code != 503 {
		t.Errorf("HEAD: %d, want 503", got.Code)
	}
}

// Two servers with the same identity, on hosts with the same name, are distinguished by an address.
// Clients must not see this address.
func TestUnavailableHidesDuplicatesAddress(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a", DuplicateID("a", "192.0.2.1:6443")), dead)
	got := s.ask("GET", gadgetsPath, "", "Accept", "application/json")
	var causes []string
	for _, c := range decoded[*metav1.Status](t, "application/json", got.Body.Bytes()).Details.Causes {
		causes = append(causes, c.Message)
	}
	if diff := cmp.Diff([]string{"a: it could not be reached", "a: it could not be reached"}, causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func TestUnavailableSaysWhy(t *testing.T) {
	dead := transportFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
	known := slices.Clip(capablePeers(nil, "a"))
	for name, c := range map[string]struct {
		events   []Event
		method   string
		path     string
		rerouted bool
		message  string
		retry    bool
	}{
		"unsynced":          {nil, "POST", gadgetsPath, false, "new.k8s.io/v1 gadgets cannot be served at this time: this server does not know yet what it and its peers serve", true},
		"unknown":           {append(known, PeerAppeared{ID: "c"}), "GET", "/apis/x.k8s.io", false, "x.k8s.io cannot be served at this time: this server does not serve it, and it is not known whether these peers do", false},
		"unresolved":        {append(known, PeerAddress{ID: "a"}), "GET", gadgetsPath, false, "new.k8s.io/v1 gadgets cannot be served at this time: this server does not serve it, and it is not known where to reach the peers that do", false},
		"unreachable":       {known, "GET", gadgetsPath, false, "new.k8s.io/v1 gadgets cannot be served at this time: this server does not serve it, and no peer that does could be reached", false},
		"watch stalled":     {append(known, LeaseWatch{Stalled: true}), "GET", "/apis/x.k8s.io", false, "x.k8s.io cannot be served at this time: this server does not serve it, and its watch on the servers' leases has stalled, so it may not know every peer", false},
		"not repeatable":    {known, "POST", gadgetsPath, false, "new.k8s.io/v1 gadgets cannot be served at this time: a peer that serves it failed, and the request cannot be sent to another", false},
		"rerouted":          {known, "POST", gadgetsPath, true, "new.k8s.io/v1 gadgets cannot be served at this time: another server sent the request here, and this one does not serve it", true},
		"whole group of it": {append(known, PeerAddress{ID: "a"}), "GET", "/openapi/v3/apis/new.k8s.io/v1", false, "new.k8s.io/v1 cannot be served at this time: this server does not serve it, and it is not known where to reach the peers that do", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Reference(), c.events, dead, fromPeers)
			header := []string{"Accept", "application/json"}
			if c.rerouted {
				header = append(header, HopHeader, "true")
			}
			got := s.ask(c.method, c.path, "", header...)
			var status metav1.Status
			if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || got.Code != 503 {
				t.Fatalf("%d %s: %v", got.Code, got.Body, err)
			}
			if status.Message != c.message {
				t.Errorf("says %q\nwant %q", status.Message, c.message)
			}
			if got := got.Header().Get("Retry-After") != ""; got != c.retry {
				t.Errorf("Retry-After: %v, want %v", got, c.retry)
			}
		})
	}
}

// One peer refuses at once, and its reason ends soon. The other peer may have carried out the
// request.
func TestNoRetryAfterWhatMayHaveBeenCarriedOut(t *testing.T) {
	for method, want := range map[string]string{"GET": "1", "POST": "", "PUT": "", "DELETE": ""} {
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "a.") {
				return says(503, "not here", RefusedHeader, "true"), nil
			}
			traced(r.Context(), true)
			return nil, errors.New("reset")
		}))
		got := s.ask(method, gadgetsPath+"/x", "")
		if outcomes := strings.Join(s.seen.outcomes(), ", "); outcomes != "a refused, b undecided" || got.Code != 503 || got.Header().Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q after %s; want %q", method, got.Code, got.Header().Get("Retry-After"), outcomes, want)
		}
	}
}

func TestUpstreamErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		header []string
		want   string
	}{
		"transport":       {refusesConnection(), nil, "error trying to reach service: dial tcp 127.0.0.1:1: io: read/write on closed pipe\n"},
		"upgrade, lost":   {errors.New("unexpected EOF"), []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, "unexpected EOF\n"},
		"upgrade":         {refusesConnection(), []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, "error dialing backend: dial tcp 127.0.0.1:1: io: read/write on closed pipe\n"},
		"connection lost": {errors.New("unexpected EOF"), nil, "error trying to reach service: unexpected EOF\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Upstream137(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return nil, c.err }))
			got := s.ask("GET", gadgetsPath, "", c.header...)
			if got.Code != 503 || got.Body.String() != c.want || got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%d %v %q, want 503 %q in plain text", got.Code, got.Header(), got.Body, c.want)
			}
		})
	}
	t.Run("no address", func(t *testing.T) {
		s := newShell(t, Upstream137(), append(capablePeers(nil, "a"), PeerAddress{ID: "a"}), transportFunc(func(*http.Request) (*http.Response, error) {
			t.Error("sent on")
			return nil, errors.New("unexpected")
		}))
		got := s.ask("GET", gadgetsPath, "")
		status := decoded[*metav1.Status](t, "application/json", got.Body.Bytes())
		if got.Code != 503 || status.Message != "Error getting ip and port info of the remote server while proxying" || status.Reason != metav1.StatusReasonServiceUnavailable {
			t.Errorf("%d %+v, want upstream's answer", got.Code, status)
		}
		if strings.Contains(got.Body.String(), "Retry") || got.Header().Get("Retry-After") != "" {
			t.Error("upstream does not say when to try again")
		}
	})
}
