package run

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/scenario"
)

// apiserver is a test server that says of itself what a kube-apiserver says.
type apiserver struct {
	address, started string // the latter is that of the process
	gate             string // the value of the gate of its own proxy; empty if it does not have the gate
	cluster          string
	hosts, endpoints []string // the identity leases and the endpoints of the cluster
}

// user is whom the server sees, or "".
func user(r *http.Request) string {
	name := map[string]string{
		"": "system:anonymous", "Bearer secret": "me", "Bearer impersonator": "impersonator", "Bearer nobody": "nobody",
		"Bearer nometrics": "nometrics",
	}[r.Header.Get("Authorization")]
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		name = certs[0].Subject.CommonName
	}
	if as := r.Header.Get("Impersonate-User"); as != "" && name == "impersonator" {
		name = as
	}
	return name
}

func (s *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	by := user(r)
	quoted := func(format string, of []string) string {
		var all []string
		for _, one := range of {
			all = append(all, fmt.Sprintf(format, one))
		}
		return strings.Join(all, ",")
	}
	switch path := r.URL.Path; {
	case by == "":
		http.Error(w, "who?", http.StatusUnauthorized)
	case path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case slices.Contains([]string{"nobody", "impersonator", "system:anonymous"}, by) || by == "nometrics" && path == "/metrics":
		http.Error(w, "no", http.StatusForbidden)
	case path == "/api":
		fmt.Fprintf(w, `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"10.96.0.0/12","serverAddress":"10.96.0.1:443"},`+
			`{"clientCIDR":"0.0.0.0/0","serverAddress":%q}]}`, s.address)
	case path == "/metrics":
		fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %s\n", s.started)
		fmt.Fprint(w, "kubernetes_feature_enabled{name=\"UnknownVersionInteroperabilityProxyOfOthers\",stage=\"BETA\"} 0\n")
		if s.gate != "" {
			fmt.Fprintf(w, "kubernetes_feature_enabled{name=\"UnknownVersionInteroperabilityProxy\",stage=\"BETA\"} %s\n", s.gate)
		}
	case path == "/api/v1/namespaces/kube-system":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, s.cluster)
	case path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" && r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":%q,"groups":["admins"],`+
			`"extra":{"authentication.kubernetes.io/credential-id":["%p"]}}}}`, by, r)
	case path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases":
		fmt.Fprintf(w, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":[%s]}`, quoted(`{"metadata":{"labels":`+
			`{"kubernetes.io/hostname":%q}},"spec":{"leaseDurationSeconds":3600,"renewTime":"2026-01-01T12:00:00.000000Z"}}`, s.hosts))
	case path == "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices":
		fmt.Fprintf(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[{"endpoints":[%s]}]}`,
			quoted(`{"addresses":[%q]}`, s.endpoints))
	default:
		http.NotFound(w, r)
	}
}

// servers starts the test servers, and returns the pairs of placeholders and texts in kubeconfigs.
// dir gets certificates of users.
func servers(t *testing.T, dir string) *strings.Replacer {
	t.Helper()
	ca, err := pki.NewAuthority(dir, "users")
	if err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]string{"cp-1": "kubernetes-admin", "cp-2": "kubernetes-admin", "other": "kubernetes-super-admin"} {
		if _, err := ca.Issue(name, pki.Request{CommonName: user, Client: true}); err != nil {
			t.Fatal(err)
		}
	}
	users := x509.NewCertPool()
	data, err := os.ReadFile(ca.CertFile())
	if err != nil || !users.AppendCertsFromPEM(data) {
		t.Fatal("no authority", err)
	}
	a := &apiserver{started: "1.5", gate: "1", cluster: "u1", endpoints: []string{"127.0.0.1", "127.0.0.1"}}
	b := &apiserver{started: "2.25", gate: "1", cluster: "u1"}
	named := &apiserver{started: "5", gate: "1", cluster: "u1"}
	vip1, off, off2 := *a, *b, *a
	vip1.address, vip1.started, vip1.endpoints = "10.0.0.9:6443", "3", []string{"10.0.0.9", "10.0.0.7"}
	vip2 := vip1
	vip2.started = "4"
	off.gate, off2.gate = "0", ""
	off.hosts = []string{"cp-1", "cp-2", "cp-3"}
	elsewhere := *b
	elsewhere.cluster = "u2"
	var turn atomic.Int64
	balancer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" {
			turn.Add(1)
		}
		[]*apiserver{a, b}[turn.Load()%2].ServeHTTP(w, r)
	})
	pairs := []string{}
	for name, handler := range map[string]http.Handler{
		"A": a, "A2": a, "B": b, "NAMED": named, "BALANCER": balancer, "VIP1": &vip1, "VIP2": &vip2, "ELSEWHERE": &elsewhere, "OFF": &off, "OFF2": &off2,
		"WEB": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" {
				fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
			}
		}),
	} {
		s := httptest.NewUnstartedServer(handler)
		s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: users}
		at := s.Listener.Addr().String()
		if server, is := handler.(*apiserver); is && server.address == "" && name != "A2" {
			server.address = at
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		if name == "NAMED" {
			at = strings.Replace(at, "127.0.0.1", "localhost", 1)
		}
		pairs = append(pairs, "@"+name+"@", "https://"+at)
		if name == "A" {
			cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			pairs = append(pairs, "@CA@", base64.StdEncoding.EncodeToString(cert))
			if err := os.WriteFile(filepath.Join(dir, "ca.crt"), cert, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// Each kubeconfig is accepted, or refused before there is any load.
func TestKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	fill := servers(t, dir)
	files, err := filepath.Glob("testdata/kubeconfigs/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no kubeconfigs", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(fill.Replace(string(data))), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	const accepted = Kind(0)
	used := map[string]bool{"token.sh": true}
	for _, c := range []struct {
		files string // names of kubeconfigs; the words after them are flags
		kind  Kind
		words string // of the error, or of what is said before the load; one per line
	}{
		{"two", accepted, "builtin\nis on: a, b"},
		{"two two", accepted, "builtin"},
		{"two same-context --contexts=a,b", KindUsage, `context "a": kubectl and skewproof ignore the context "a" of same-context.yaml`},
		{"two kubeadm-1 kubeadm-2 --contexts=a,b", accepted, "builtin"},
		{"kubeadm-1 kubeadm-2", KindUsage, `ignore the cluster "kubernetes" of kubeadm-2.yaml, because a file before it has another one` + "\nset-context NAME"},
		{"nosuch two", KindNotRun, "nosuch.yaml: no such file"},
		{"one", KindUsage, "1 contexts: two servers at least are needed\nset-context NAME"},
		{"no-cluster", KindUsage, `context "b": there is no cluster "b": correct the name`},
		{"no-user", KindUsage, `context "a": there is no user "me": correct the name`},
		{"as", accepted, "builtin"},
		{"as-groups-only", KindUsage, "without impersonating a user"},
		{"two --contexts=a,a", KindUsage, `context "a" is named twice`},
		{"forbidden", KindUsage, "the user may not read /api at https://\n(403): bind the user the ClusterRole system:discovery"},
		{"no-token", KindUsage, "the user may not read /api"},
		{"expired", KindUsage, "does not accept the user's credentials (401): renew them"},
		{"no-scheme", KindUsage, `server "10.0.0.1:6443" is not an https URL, so client-go would not use TLS: write https://`},
		{"http", KindUsage, `server "http://10.0.0.1:6443" is not an https URL`},
		{"auth-provider", KindUsage, `user "me" has the auth-provider "gcp"` + "\ngive the user an exec plugin or a token"},
		{"exec", accepted, "builtin"},
		{"exec-missing", KindNotRun, "no-such-plugin not found\ninstall it"},
		{"relative", accepted, "builtin"},
		{"missing-file", KindUsage, "nosuch.crt"},
		{"nodes", accepted, "builtin"},
		{"users", KindUsage, `contexts "a" and "b" have different users, "kubernetes-admin"` + "\nkubernetes-super-admin"},
		{"balancer", KindUsage, `context "balancer" leads to several servers: https://` + "\nit is a load balancer\nset-cluster NAME"},
		{"two-names", KindUsage, `contexts "a" and "a2" lead to the same server, at https://` + "\nit is \"127.0.0.1:\nstarted at 1970-01-01T00:00:01.500Z"},
		{"two-names-no-metrics", KindUsage, `contexts "a" and "a2" lead to the same server`},
		{"one-address", KindUsage, `contexts "a" and "b" lead to the same server`},
		{"shared-address", accepted, "external\nthe cluster has servers that no context names: 10.0.0.7\nwhose proxy answers is not known\n" +
			"vip1 at https://127.0.0.1:\nwhose kube-apiserver is at 10.0.0.9:6443\n--subject builtin"},
		{"shared-address --subject=builtin", accepted, "builtin"},
		{"named", accepted, "builtin\nis on: a, named"},
		{"no-metrics", accepted, "external\nnot known: whether a has its own proxy on: its metrics cannot be read (status 403)\n--subject builtin says"},
		{"no-metrics --subject=builtin", accepted, "builtin"},
		{"two --subject=external", accepted, "external"},
		{"two --subject=none", KindUsage, `--subject "none": the backend existing has external, builtin`},
		{"clusters", KindUsage, `contexts "a" and "elsewhere" lead to different clusters`},
		{"no-apiserver", KindNotRun, `ask server "web" at https://` + "\n/api"},
		{"gates", accepted, "builtin\nis on: a\nis off: plain"},
		{"no-gates", accepted, "external\nis off: plain, plain2\nservers that no context names: 1 of cp-1, cp-2, cp-3"},
		{"insecure", KindUsage, "skips TLS verification"},
		{"proxied", KindUsage, "it has a proxy-url"},
		{"path", KindUsage, "has a path"},
		{"two-methods", KindUsage, "more than one authentication method found for me"},
		{"redacted", KindUsage, "--raw"},
		{"duplicate", KindNotRun, `duplicate name "me"`},
	} {
		t.Run(c.files, func(t *testing.T) {
			spec := Spec{Scenario: "quiet", Backend: scenario.BackendExisting}
			var list []string
			for _, word := range strings.Fields(c.files) {
				switch name, value, flag := strings.Cut(word, "="); {
				case name == "--contexts":
					spec.Contexts = strings.Split(value, ",")
				case flag:
					spec.Subject = value
				default:
					list = append(list, word+".yaml")
					used[word+".yaml"] = true
				}
			}
			spec.Kubeconfig = strings.Join(list, string(os.PathListSeparator))
			p, err := spec.Plan()
			if err == nil {
				err = p.backend.prepare(t.Context(), p)
			}
			kind, said := accepted, ""
			if err != nil {
				kind, said = KindOf(err), err.Error()
			} else {
				said = strings.Join(append(p.backend.(*existingBackend).facts(p.Spec.Subject), p.describe().Subject), "\n")
			}
			if kind != c.kind {
				t.Errorf("kind %d, want %d", kind, c.kind)
			}
			for words := range strings.Lines(c.words) {
				if !strings.Contains(said, strings.TrimSpace(words)) {
					t.Errorf("it says\n%s\nwithout %q", said, words)
				}
			}
			if strings.Contains(said, "secret") {
				t.Errorf("it tells the token: %s", said)
			}
		})
	}
	for _, file := range files {
		if !used[filepath.Base(file)] {
			t.Errorf("no row uses %s", file)
		}
	}
}
