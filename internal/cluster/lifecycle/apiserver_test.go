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
		case "/older/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.30.14"}`)
		case "/other/version":
			_, _ = io.WriteString(w, "<html>")
		}
	}))
	defer server.Close()
	if err := Get(t.Context(), server.Client(), server.URL+"/readyz", io.Discard); err == nil || !strings.Contains(err.Error(), "GET /readyz: 500") {
		t.Errorf("got %v, want an error with the status", err)
	}
	for path, want := range map[string][2]string{"": {"v1.37.1", "1.36"}, "/older": {"v1.30.14", ""}} {
		if version, emulates, err := VersionAt(t.Context(), server.Client(), server.URL+path); version != want[0] || emulates != want[1] || err != nil {
			t.Errorf("%q: got %q, %q, %v, want %q", path, version, emulates, err, want)
		}
	}
	if version, _, err := VersionAt(t.Context(), server.Client(), server.URL+"/other"); err == nil {
		t.Errorf("an invalid version is %q", version)
	}
}
