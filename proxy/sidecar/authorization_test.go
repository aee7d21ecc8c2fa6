package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"
)

// mayNot forbids these users everything except questions about themselves.
func mayNot(names ...string) func(authorizer.Attributes) bool {
	return func(at authorizer.Attributes) bool {
		return slices.Contains(names, at.GetUser().GetName()) && !strings.HasPrefix(at.GetResource(), "self")
	}
}

// If the local server would refuse a caller, the caller gets the same 403, word for word, and
// learns nothing about resources and peers. If the local server would allow the request, the caller
// gets the 503 with the reason. If the local server does not answer this question, the 503 gives no
// reason.
func TestOwn503sAreAuthorized(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.atB.stop()
	if err := <-p.atB.ended; err != nil {
		t.Fatal(err)
	}
	p.a.set(func() {
		p.a.forbids = mayNot("mallory", user.Anonymous)
		p.a.tokens["mallorys"] = authenticationv1.UserInfo{Username: "mallory"}
		p.a.tokens["bots"] = authenticationv1.UserInfo{Username: "bot"}
	})
	// direct sends requests to the local server itself. That server refuses them before it says
	// that it does not serve the resource.
	direct := p.client(&p.proxies, true)
	for _, c := range []struct {
		name    string
		by      *http.Client
		asked   []string // headers
		as      []string // headers for the local server
		message string   // of a 403 or 401; "": 503
	}{
		{name: "alice", by: p.user("alice")},
		{name: "a token", by: p.client(nil, true), asked: []string{"Authorization", "Bearer bots"}},
		{name: "an administrator", by: p.user("admin", user.SystemPrivilegedGroup)},
		{name: "mallory", by: p.user("mallory"), as: []string{"X-Remote-User", "mallory"}, message: `User "mallory" cannot list resource "novelties" in API group "new.example" at the cluster scope: a says so`},
		{name: "mallory's token", by: p.client(nil, true), asked: []string{"Authorization", "Bearer mallorys"}, as: []string{"X-Remote-User", "mallory"}, message: `User "mallory" cannot list`},
		{name: "nobody", by: p.client(nil, true), as: []string{"X-Remote-User", user.Anonymous, "X-Remote-Group", user.AllUnauthenticated}, message: `User "system:anonymous" cannot list`},
		{name: "a refused token", by: p.client(nil, true), asked: []string{"Authorization", "Bearer bad"}, message: "Unauthorized"},
		{name: "alice as mallory", by: p.user("alice"), asked: []string{"Impersonate-User", "mallory"}, as: []string{"X-Remote-User", "alice", "Impersonate-User", "mallory"}, message: `User "mallory" cannot list`},
		{name: "alice as an administrator", by: p.user("alice"), asked: []string{"Impersonate-User", "admin", "Impersonate-Group", user.SystemPrivilegedGroup}},
		{name: "alice as a service account", by: p.user("alice"), asked: []string{"Impersonate-User", "system:serviceaccount:default:x"}},
		{name: "mallory as alice", by: p.user("mallory"), asked: []string{"Impersonate-User", "alice"}, as: []string{"X-Remote-User", "mallory", "Impersonate-User", "alice"}, message: `User "mallory" cannot impersonate`},
		{name: "a group and no user", by: p.user("alice"), asked: []string{"Impersonate-Group", "x"}, as: []string{"X-Remote-User", "alice", "Impersonate-Group", "x"}, message: "without impersonating a user"},
	} {
		got := p.atA.get(c.by, farAway, c.asked...)
		if c.message == "" {
			if s := got.status(t); got.code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "novelties") || !strings.Contains(got.body, "apiserver-b: ") {
				t.Errorf("%s: %d %s; want a 503 that names the resource and the peer", c.name, got.code, got.body)
			}
			continue
		}
		if strings.Contains(got.body, "apiserver-b") || !strings.Contains(got.status(t).Message, c.message) || got.header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %s; want %q", c.name, got.code, got.body, c.message)
		}
		if c.as == nil {
			continue
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.a.server.URL+farAway, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.as); i += 2 {
			request.Header.Add(c.as[i], c.as[i+1])
		}
		want := do(t, direct, request)
		if got.code != want.code || got.body != want.body || got.header.Get("Content-Type") != want.header.Get("Content-Type") ||
			got.header.Get("X-Content-Type-Options") != want.header.Get("X-Content-Type-Options") {
			t.Errorf("%s:\n%d %s %v\nthe local server itself:\n%d %s %v", c.name, got.code, got.body, got.header, want.code, want.body, want.header)
		}
	}
	alice, mallory, admin := p.user("alice"), p.user("mallory"), p.user("admin", user.SystemPrivilegedGroup)
	p.atA.get(alice, farAway)
	p.atA.get(mallory, farAway)
	_, before := p.a.reviewed()
	for range 10 {
		p.atA.get(alice, farAway)
		p.atA.get(mallory, farAway)
	}
	if _, after := p.a.reviewed(); after != before {
		t.Errorf("%d reviews of the same question again, want none", after-before)
	}

	p.a.set(func() {
		p.a.noReviews = true
		p.a.tokens["new"] = authenticationv1.UserInfo{Username: "new"}
	})
	for name, c := range map[string]struct {
		by      *http.Client
		headers []string
	}{
		"a user who was not reviewed":    {p.user("bob"), nil},
		"a token whose user is unknown":  {p.client(nil, true), []string{"Authorization", "Bearer new"}},
		"as a user who was not reviewed": {alice, []string{"Impersonate-User", "carol"}},
		"an administrator":               {admin, []string{"Impersonate-Uid", "1", "Impersonate-User", "x"}},
	} {
		got := p.atA.get(c.by, farAway, c.headers...)
		if got.code != http.StatusServiceUnavailable || strings.Contains(got.body, "novelties") || strings.Contains(got.body, "apiserver-b") {
			t.Errorf("%s: %d %s; want a 503 that names nothing", name, got.code, got.body)
		}
	}
}

// An impersonator can choose names as long as headers. The sidecar neither sends nor caches such
// names.
func TestIdentitiesWithoutEndAreNotReviewed(t *testing.T) {
	long := strings.Repeat("x", maxIdentity/2)
	for name, c := range map[string]struct {
		by       user.DefaultInfo
		of       string
		reviewed bool
	}{
		"a usual one":      {by: user.DefaultInfo{Name: "alice", Groups: []string{"a", "b"}}, reviewed: true},
		"half of it":       {by: user.DefaultInfo{Name: long}, reviewed: true},
		"groups":           {by: user.DefaultInfo{Name: "alice", Groups: []string{long, long}}},
		"extra attributes": {by: user.DefaultInfo{Name: "alice", Extra: map[string][]string{"a": {long}, long: nil}}},
		"a UID":            {by: user.DefaultInfo{Name: "alice", UID: long + long}},
		"whom to be":       {by: user.DefaultInfo{Name: "alice", UID: long}, of: long},
	} {
		reviewed := false
		a := &authorization{server: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			reviewed = true
			return authorizer.DecisionAllow, "", nil
		})}
		current := &acting{}
		decision, _, err := a.review(context.WithValue(t.Context(), actingKey{}, current), authorizer.AttributesRecord{User: &c.by, Name: c.of})
		if reviewed != c.reviewed || (err == nil) != c.reviewed || (current.err == nil) != c.reviewed || (decision == authorizer.DecisionAllow) != c.reviewed {
			t.Errorf("%s: reviewed %t, %v, %v; want %t", name, reviewed, decision, err, c.reviewed)
		}
	}
}

// The example for Prometheus grants the path that the front door serves, and no other path.
func TestExampleGrantsTheMetrics(t *testing.T) {
	file, err := os.ReadFile("../../kindconfigs/kubeadm/metrics-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	first, second, _ := strings.Cut(string(file), "\n---\n")
	if err := errors.Join(yaml.UnmarshalStrict([]byte(first), &role), yaml.UnmarshalStrict([]byte(second), &binding)); err != nil {
		t.Fatal(err)
	}
	want := []rbacv1.PolicyRule{{NonResourceURLs: []string{metricsPath}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" || binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "ClusterRole" {
		t.Errorf("the binding refers to %+v; rules (-want +got):\n%s", binding.RoleRef, diff)
	}
	docs, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "metrics_path: "+metricsPath+"\n") {
		t.Errorf("docs/proxy.md scrapes another path than %s", metricsPath)
	}
}

// The sidecar shows its own pages only to callers whom the local server allows these paths.
func TestOwnPagesAreAuthorized(t *testing.T) {
	a, r := one(t)
	a.set(func() {
		a.grants = func(at authorizer.Attributes) bool {
			return (at.GetPath() == metricsPath || at.GetPath() == debugPeersPath) && at.GetVerb() == "get" && at.GetUser().GetName() == "prometheus"
		}
		a.tokens["scrape"] = authenticationv1.UserInfo{Username: "prometheus"}
		a.tokens["other"] = authenticationv1.UserInfo{Username: "other"}
	})
	anyone := r.client(nil, true)
	for path, want := range map[string]string{metricsPath: "skewproof_proxy_", debugPeersPath: `"policy": "reference"`} {
		for _, c := range []struct {
			name    string
			by      *http.Client
			headers []string
			code    int
		}{
			{"a token with the right", anyone, []string{"Authorization", "Bearer scrape"}, http.StatusOK},
			{"a certificate with the right", r.user("prometheus"), nil, http.StatusOK},
			{"an administrator", r.user("admin", user.SystemPrivilegedGroup), nil, http.StatusOK},
			{"an administrator as one without", r.user("admin", user.SystemPrivilegedGroup), []string{"Impersonate-User", "other"}, http.StatusForbidden},
			{"a token without the right", anyone, []string{"Authorization", "Bearer other"}, http.StatusForbidden},
			{"a refused token", anyone, []string{"Authorization", "Bearer bad"}, http.StatusUnauthorized},
			{"nobody", anyone, nil, http.StatusForbidden},
		} {
			got := r.get(c.by, path, c.headers...)
			if got.code != c.code || strings.Contains(got.body, want) != (c.code == http.StatusOK) {
				t.Errorf("%s at %s: %d %.300s; want %d", c.name, path, got.code, got.body, c.code)
			}
			if c.code == http.StatusForbidden && !strings.HasSuffix(got.status(t).Message, fmt.Sprintf("cannot get path %q: a says so", path)) {
				t.Errorf("%s at %s: %s, want the local server's words", c.name, path, got.body)
			}
		}
		a.set(func() { a.noReviews = true })
		if got := r.get(r.user("carol"), path); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, want) {
			t.Errorf("%s without an answer of the local server: %d %.300s", path, got.code, got.body)
		}
		a.set(func() { a.noReviews = false })
		if got := r.get(r.user("admin", user.SystemPrivilegedGroup), path+"/x"); strings.Contains(got.body, want) {
			t.Errorf("%s/x is not the local server's", path)
		}
	}
	// /metrics is the local server's.
	if got := r.get(r.user("admin", user.SystemPrivilegedGroup), "/metrics"); !strings.Contains(got.body, "process_start_time_seconds 1000.5") {
		t.Errorf("/metrics: %d %.300s", got.code, got.body)
	}
}

// The filter's answer becomes a refusal only if it is a Status below 500. Any other answer proves
// nothing, so it is an error and never a permission.
func TestOnlyARefusalOfTheFilterRefuses(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`
	for name, c := range map[string]struct {
		code    int
		body    string
		refuses bool
	}{
		"a Status":               {403, status, true},
		"a Status of a failure":  {500, status, false},
		"text":                   {403, "no", false},
		"text of a failure":      {500, "no", false},
		"another object":         {403, `{"kind":"Pod","apiVersion":"v1"}`, false},
		"nothing":                {403, "", false},
		"an answer without code": {0, "", false},
	} {
		a := &authorization{impersonation: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.code != 0 {
				w.WriteHeader(c.code)
			}
			_, _ = io.WriteString(w, c.body)
		})}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), actingKey{}, &acting{}), "GET", "/api/v1/pods", nil)
		refusal, err := a.impersonate(r)
		if (refusal != nil) != c.refuses || (err == nil) != c.refuses || refusal != nil && refusal.Message != "no" {
			t.Errorf("%s: refused with %v, error %v; want a refusal: %v", name, refusal, err, c.refuses)
		}
	}
}
