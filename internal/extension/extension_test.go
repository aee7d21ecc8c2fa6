package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	answers "github.com/skewproof/skewproof/internal/answer"
	"github.com/skewproof/skewproof/internal/pki"
)

// running is the program on loopback, with keys of its own.
type running struct {
	t      *testing.T
	url    string
	apis   string
	roots  *x509.CertPool
	proxy  tls.Certificate
	nobody tls.Certificate // of another authority, with the right name
}

func start(t *testing.T, apis ...API) *running {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ca, err := pki.NewAuthority(dir, "ca")
	must(err)
	fronts, err := pki.NewAuthority(dir, "fronts")
	must(err)
	serving, err := ca.Issue("serving", pki.Request{CommonName: "extension", Server: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	must(err)
	r := &running{t: t, apis: filepath.Join(dir, "apis.json"), roots: x509.NewCertPool()}
	must(WriteAPIs(r.apis, apis))
	for of, name := range map[*tls.Certificate]string{&r.proxy: "front-proxy-client", &r.nobody: "somebody"} {
		pair, err := fronts.Issue(name, pki.Request{CommonName: name, Client: true})
		must(err)
		*of, err = tls.LoadX509KeyPair(pair.Cert, pair.Key)
		must(err)
	}
	pem, err := os.ReadFile(ca.CertFile())
	must(err)
	r.roots.AppendCertsFromPEM(pem)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	r.url = "https://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listener, Config{
			CertFile: serving.Cert, KeyFile: serving.Key, ClientCAFile: fronts.CertFile(), AllowedName: "front-proxy-client", APIs: r.apis,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for {
		code, _, err := r.try("GET", "/readyz", "", nil)
		if err == nil && code == http.StatusOK {
			return r
		}
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("it ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *running) try(method, path, body string, with *tls.Certificate, headers ...string) (int, string, error) {
	config := &tls.Config{RootCAs: r.roots}
	if with != nil {
		config.Certificates = []tls.Certificate{*with}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", "alice")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}

// ask asks as the front proxy does.
func (r *running) ask(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	code, got, err := r.try(method, path, body, &r.proxy, headers...)
	if err != nil {
		r.t.Fatal(err)
	}
	return code, got
}

var gauges = API{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1", "v2"}}

const base = "/apis/metrics.example.com/v1/gauges"

func TestLifeOfAnObject(t *testing.T) {
	r := start(t, gauges)
	for _, step := range []struct {
		method, path, body string
		want               int
		says               string
	}{
		{"GET", base + "/x", "", 404, `gauges.metrics.example.com \"x\" not found`},
		{"POST", base + "?dryRun=All", `{"metadata":{"name":"x"}}`, 201, `"name":"x"`},
		{"GET", base + "/x", "", 404, "not found"},
		{"POST", base, `{"metadata":{"name":"x"}}`, 201, `"apiVersion":"metrics.example.com/v1"`},
		{"POST", base, `{"metadata":{"name":"x"}}`, 409, "AlreadyExists"},
		{"POST", base, `{}`, 400, "has no name"},
		{"POST", base, `[`, 400, "read the object"},
		{"GET", "/apis/metrics.example.com/v2/gauges/x", "", 200, `"apiVersion":"metrics.example.com/v2"`},
		{"GET", base, "", 200, `"kind":"gaugesList"`},
		{"PATCH", base + "/x", `{}`, 405, "MethodNotAllowed"},
		{"GET", base + "/x/status", "", 404, "404 page not found"},
		{"GET", "/apis/metrics.example.com/v3/gauges", "", 404, "404 page not found"},
		{"DELETE", base + "/x?dryRun=All", "", 200, `"name":"x"`},
		{"DELETE", base + "/x", "", 200, `"name":"x"`},
		{"DELETE", base + "/x", "", 404, "not found"},
		{"GET", base + "?watch=true&timeoutSeconds=1", "", 200, `"type":"BOOKMARK"`},
	} {
		if code, got := r.ask(step.method, step.path, step.body); code != step.want || !strings.Contains(got, step.says) {
			t.Errorf("%s %s: %d %s; want %d with %q", step.method, step.path, code, got, step.want, step.says)
		}
	}
}

func TestATable(t *testing.T) {
	r := start(t, gauges)
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	r.ask("POST", base, `{"metadata":{"name":"x"}}`)
	code, body := r.ask("GET", base, "", "Accept", asTable)
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); code != 200 || err != nil || table.Kind != "Table" || table.APIVersion != "meta.k8s.io/v1" {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if len(table.Rows) != 1 || !slices.Equal(table.Rows[0].Cells, []any{"x"}) || !strings.Contains(string(table.Rows[0].Object.Raw), `"kind":"PartialObjectMetadata"`) {
		t.Errorf("the rows are %s", body)
	}
}

// It is by these documents that kube-apiservers learn what to pass on.
func TestDiscoveryFollowsWhatIsToBeServed(t *testing.T) {
	r := start(t, gauges)
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	listed := func() (all []string) {
		t.Helper()
		_, body := r.ask("GET", "/apis", "", "Accept", aggregated)
		doc, err := answers.ParseDiscovery([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range doc.Resources {
			all = append(all, resource.String())
		}
		return all
	}
	if got := listed(); !slices.Equal(got, []string{"metrics.example.com/v1/gauges", "metrics.example.com/v2/gauges"}) {
		t.Errorf("it lists %q", got)
	}
	code, body := r.ask("GET", "/apis/metrics.example.com/v2", "", "Accept", "application/json")
	var legacy struct {
		Kind      string `json:"kind"`
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(body), &legacy); code != 200 || err != nil || legacy.Kind != "APIResourceList" || len(legacy.Resources) != 1 || legacy.Resources[0].Name != "gauges" {
		t.Errorf("a version by itself: %d %s %v", code, body, err)
	}
	if err := WriteAPIs(r.apis, []API{{Group: gauges.Group, Resource: gauges.Resource, Versions: []string{"v2"}}}); err != nil {
		t.Fatal(err)
	}
	if got := listed(); !slices.Equal(got, []string{"metrics.example.com/v2/gauges"}) {
		t.Errorf("after v1 was taken away it lists %q", got)
	}
	if code, _ := r.ask("GET", base, ""); code != 404 {
		t.Errorf("v1 is answered %d, want 404", code)
	}
	if code, _ := r.ask("GET", "/apis/metrics.example.com/v1", ""); code != 404 {
		t.Errorf("discovery of v1 is answered %d, want 404", code)
	}
}

// X-Remote-User is worth something from a front proxy only.
func TestOnlyTheFrontProxyIsBelieved(t *testing.T) {
	r := start(t, gauges)
	for who, with := range map[string]*tls.Certificate{"nobody": nil, "another of the same authority": &r.nobody} {
		if code, _, err := r.try("GET", base, "", with); err != nil || code != http.StatusUnauthorized {
			t.Errorf("%s was answered %d, %v; want 401", who, code, err)
		}
	}
	if code, _ := r.ask("GET", base, ""); code != http.StatusOK {
		t.Errorf("the front proxy was answered %d", code)
	}
}

func TestRunNamesTheMissingAPIsFile(t *testing.T) {
	err := Run(t.Context(), Config{APIs: filepath.Join(t.TempDir(), "none")})
	if err == nil || !strings.Contains(err.Error(), "read the APIs to serve") {
		t.Errorf("got %v", err)
	}
}
