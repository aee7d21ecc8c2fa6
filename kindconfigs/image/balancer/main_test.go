package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// start runs the balancer on files, and returns its address.
func start(t *testing.T, cdsText string) (address, dir string) {
	t.Helper()
	address, dir = gone(t), t.TempDir()
	write(t, dir, "lds.yaml", empty)
	write(t, dir, "cds.yaml", empty)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, dir) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	write(t, dir, "cds.yaml", cdsText)
	write(t, dir, "lds.yaml", lds(address))
	return address, dir
}

// write replaces a file as kind does.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

// awaitAnswer asks on new connections until the answer is the one wanted.
func awaitAnswer(t *testing.T, address, want string) {
	t.Helper()
	client := &http.Client{Transport: checks()}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		resp, err := client.Get("https://" + address + "/")
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(text) == want {
				return
			}
		}
		<-ticker.C // go test's own time limit ends it
	}
}

// kind starts it with empty files, and the first server comes up long before the others do.
func TestBalancerWhileAClusterIsMade(t *testing.T) {
	only := serveTLS(t, "only")
	address, dir := start(t, cds(gone(t), only, gone(t)))
	awaitAnswer(t, address, "only")

	other := serveTLS(t, "other")
	write(t, dir, "cds.yaml", cds(other))
	awaitAnswer(t, address, "other")
}

// serveTLS starts a healthy server that says who it is.
func serveTLS(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// gone is an address that nothing listens at.
func gone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
