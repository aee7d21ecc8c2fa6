package sidecar

import (
	"net/http"
	"testing"
)

// Identity headers count only from a front proxy whose common name is exactly an allowed one. Its
// certificate must be signed by the request-header authorities.
func TestNamesNearAnAllowedFrontProxy(t *testing.T) {
	a, r := one(t, func(_ *world, o *Options) { o.RequestHeaderNames = []string{"front-proxy-client", "Aggregator"} })
	sees := func(cert issued) string {
		before := a.count(common)
		got := r.get(r.client(&cert, true), common, "X-Remote-User", "bob", "X-Remote-Group", "system:masters")
		if s, _ := a.last(common); got.code == http.StatusOK && a.count(common) == before+1 {
			return s.user
		}
		return ""
	}
	for _, name := range []string{"front-proxy-client", "Aggregator"} {
		if got := sees(r.frontCA.issue(subject{name: name})); got != "bob" {
			t.Errorf("through %q the local server sees %q, want bob", name, got)
		}
		if got := sees(r.ca.issue(subject{name: name})); got == "bob" {
			t.Errorf("through %q of the clients' authority the local server sees %q", name, got)
		}
	}
	for _, near := range []string{
		"", "front-proxy", "front-proxy-clien", "front-proxy-client2", "front-proxy-client ", " front-proxy-client", "ront-proxy-client",
		"Front-Proxy-Client", "FRONT-PROXY-CLIENT", "front-proxy-client.evil", "evil.front-proxy-client", "front-proxy-client,Aggregator",
		"aggregator", "Aggregator\x00", "front_proxy_client", "*", "front-proxy-*",
	} {
		if got := sees(r.frontCA.issue(subject{name: near})); got == "bob" {
			t.Errorf("%q counts as an allowed front proxy", near)
		}
	}
	if got := sees(r.frontCA.issue(subject{name: "another", dns: []string{"front-proxy-client"}, groups: []string{"front-proxy-client"}})); got == "bob" {
		t.Error("an allowed name elsewhere in the certificate counts")
	}
}
