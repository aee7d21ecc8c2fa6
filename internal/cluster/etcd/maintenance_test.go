package etcd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMaintenance(t *testing.T) {
	var asked []string
	sizes := []string{`{"dbSize":"9000"}`, `{"dbSize":"4000"}`}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path+" "+string(body))
		switch r.URL.Path {
		case "/v3/kv/range":
			_, _ = io.WriteString(w, `{"header":{"revision":"812"}}`)
		case "/v3/maintenance/status":
			_, _ = io.WriteString(w, sizes[0])
			sizes = sizes[1:]
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	defer server.Close()
	g := Gateway{Client: server.Client(), Address: strings.TrimPrefix(server.URL, "https://")}
	if revision, err := g.Compact(t.Context()); revision != 812 || err != nil {
		t.Errorf("compacted at %d, error %v", revision, err)
	}
	if before, after, err := g.Defragment(t.Context()); before != 9000 || after != 4000 || err != nil {
		t.Errorf("from %d to %d bytes, error %v", before, after, err)
	}
	all := strings.Join(asked, "\n")
	for _, want := range []string{`/v3/kv/compaction {"revision":"812","physical":true}`, "/v3/maintenance/defragment {}"} {
		if !strings.Contains(all, want) {
			t.Errorf("etcd was not asked %s:\n%s", want, all)
		}
	}
}

func TestMaintenanceThatFails(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":"etcdserver: mvcc: required revision has been compacted"}`, http.StatusBadRequest)
	}))
	defer server.Close()
	g := Gateway{Client: server.Client(), Address: strings.TrimPrefix(server.URL, "https://")}
	if _, err := g.Compact(t.Context()); err == nil || !strings.Contains(err.Error(), "compact etcd") || !strings.Contains(err.Error(), "has been compacted") {
		t.Errorf("compact: %v", err)
	}
	if _, _, err := g.Defragment(t.Context()); err == nil || !strings.Contains(err.Error(), "defragment etcd") {
		t.Errorf("defragment: %v", err)
	}
}
