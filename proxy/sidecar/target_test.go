package sidecar

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// A target such as "x:https://host/path" has no path, so it is not known which server serves it.
// The local server would get another path, or "/", at which a kube-apiserver lists its paths.
func TestOpaqueTargetsAreRefused(t *testing.T) {
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
		a.set(func() {
			for _, s := range a.seen {
				t.Errorf("%s arrived as %s of %s", target, s.path, s.user)
			}
			a.seen = nil
		})
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s, want 400", target, answer.Status)
		}
	}
}

func TestStrangeTargets(t *testing.T) {
	for _, c := range []struct {
		method, target string
		major          int
		want           bool
	}{
		{"GET", common, 1, false}, {"GET", common, 2, false}, {"OPTIONS", "*", 1, false}, {"OPTIONS", "*", 2, false},
		{"GET", "https://evil.test" + common, 1, false}, // the absolute form (RFC 9112, 3.2.2)
		{"GET", "https://evil.test" + common, 2, true},
		{"GET", "x:https://evil.test" + common, 1, true}, {"GET", "x:https://evil.test" + common, 2, true}, {"GET", "mailto:a@b", 1, true},
		{"CONNECT", "example.com:443", 1, false}, {"CONNECT", "example.com:443", 2, false}, {"GET", "//evil.test" + common, 1, false},
	} {
		u := &url.URL{Host: c.target}
		if c.method != http.MethodConnect {
			var err error
			if u, err = url.ParseRequestURI(c.target); err != nil {
				t.Fatal(err)
			}
		}
		if got := strangeTarget(&http.Request{Method: c.method, URL: u, RequestURI: c.target, ProtoMajor: c.major}); got != c.want {
			t.Errorf("%s %s by HTTP/%d: %t, want %t", c.method, c.target, c.major, got, c.want)
		}
	}
}
