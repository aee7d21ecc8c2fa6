package sidecar

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"
)

// A target such as "x:https://host/path" has no path for the decision who serves it, but would
// arrive at the local server with one.
func TestOpaqueTargetsDoNotChangeThePath(t *testing.T) {
	a, r := one(t)
	admin := r.ca.issue(subject{name: "admin", groups: []string{"system:masters"}})
	for _, target := range []string{"x:https://%s" + common, "https:http://%s" + common, "x:" + common[1:], "x:*"} {
		conn, err := tls.Dial("tcp", r.front, &tls.Config{RootCAs: pool(r.ca), ServerName: peerServerName, Certificates: []tls.Certificate{admin.tls(t)}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET "+target+" HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n", r.front); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if s, ok := a.last(common); ok {
			t.Errorf("%s arrived as %s of %s", target, s.path, s.user)
			a.set(func() { a.seen = nil })
		}
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, want the local server's 404", target, answer.Status)
		}
	}
}
