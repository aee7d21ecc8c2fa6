package lifecycle

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAServerThatIsNotReadySaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			http.Error(w, "etcd failed", http.StatusInternalServerError)
		case "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.37.1","emulationMajor":"1","emulationMinor":"36"}`)
		case "/other/version":
			_, _ = io.WriteString(w, "<html>")
		}
	}))
	defer server.Close()
	if err := Get(t.Context(), server.Client(), server.URL+"/readyz", io.Discard); err == nil || !strings.Contains(err.Error(), "GET /readyz: 500") {
		t.Errorf("got %v, want an error with the status", err)
	}
	if version, err := VersionAt(t.Context(), server.Client(), server.URL, ""); version != "v1.37.1" || err != nil {
		t.Errorf("got %q, %v", version, err)
	}
	if version, err := VersionAt(t.Context(), server.Client(), server.URL, "1.36"); version != "v1.37.1" || err != nil {
		t.Errorf("it emulates what it should: got %q, %v", version, err)
	}
	if version, err := VersionAt(t.Context(), server.Client(), server.URL, "1.35"); err == nil || !strings.Contains(err.Error(), `emulates "1.36", and should emulate 1.35`) {
		t.Errorf("it emulates something else: got %q, %v", version, err)
	}
	if version, err := VersionAt(t.Context(), server.Client(), server.URL+"/other", ""); err == nil {
		t.Errorf("what is no version is %q", version)
	}
}
