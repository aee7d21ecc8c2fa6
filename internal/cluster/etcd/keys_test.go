package etcd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestKeysLeaveOutEvents(t *testing.T) {
	var removed []string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/kv/range", func(w http.ResponseWriter, r *http.Request) {
		var q rangeRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || !q.KeysOnly {
			t.Errorf("%+v, %v: the request must not ask for values", q, err)
		}
		var a rangeResponse
		for _, key := range []string{"/registry/configmaps/x", "/registry/events/default/e", "/registry/leases/kube-system/apiserver-1"} {
			a.KVs = append(a.KVs, keyValue{Key: []byte(key)})
		}
		_ = json.NewEncoder(w).Encode(a)
	})
	mux.HandleFunc("POST /v3/kv/deleterange", func(w http.ResponseWriter, r *http.Request) {
		var q rangeRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.RangeEnd != nil {
			t.Errorf("%+v, %v: want one key", q, err)
		}
		removed = append(removed, string(q.Key))
		_, _ = w.Write([]byte("{}"))
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	g := Gateway{Client: server.Client(), Address: server.Listener.Addr().String()}
	keys, err := g.Keys(t.Context())
	if want := []string{"/registry/configmaps/x", "/registry/leases/kube-system/apiserver-1"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("got %q, %v, want %q", keys, err, want)
	}
	if err := g.Remove(t.Context(), keys); err != nil || !slices.Equal(removed, keys) {
		t.Errorf("removed %q, %v, want %q", removed, err, keys)
	}
	server.Close()
	if _, err := g.Keys(t.Context()); err == nil {
		t.Error("Keys returned no error without etcd")
	}
	if err := g.Remove(t.Context(), keys); err == nil {
		t.Error("Remove returned no error without etcd")
	}
}
