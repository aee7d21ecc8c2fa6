package recorded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/semver"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

func mustGet(t testing.TB, name string) *Version {
	t.Helper()
	v, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// listed returns the resources of both roots, in order.
func listed(v *Version) (gvrs []history.GVR) {
	for _, root := range v.Roots {
		for _, g := range root {
			for _, gv := range g.Versions {
				for _, r := range gv.Resources {
					gvrs = append(gvrs, history.GVR{Group: g.Name, Version: gv.Version, Resource: r.Resource})
				}
			}
		}
	}
	return gvrs
}

// named returns the resources of the document, in order.
func named(v *Version) (gvrs []history.GVR) {
	for _, r := range v.Document.Resources {
		gvrs = append(gvrs, r.GVR)
	}
	return gvrs
}

func TestEveryReleaseIsRead(t *testing.T) {
	for _, want := range []string{"v1.30.14", "v1.34.4", "v1.35.4", "v1.36.3", "v1.37.1"} {
		if !slices.Contains(Names(), want) {
			t.Errorf("recorded are %q, and not %s", Names(), want)
		}
	}
	if !slices.IsSortedFunc(Names(), semver.Compare) {
		t.Errorf("%q is not in order", Names())
	}
	for _, name := range Names() {
		v := mustGet(t, name)
		if v.Name != name {
			t.Errorf("%s calls itself %q", name, v.Name)
		}
		gvrs := listed(v)
		if !slices.Equal(gvrs, named(v)) {
			t.Errorf("%s: roots and document list\n%v\n%v", name, gvrs, named(v))
		}
		if len(gvrs) < 75 {
			t.Errorf("%s: only %d resources", name, len(gvrs))
		}
		if core := v.Roots[proxy.RootCore]; len(core) != 1 || core[0].Name != "" {
			t.Errorf("%s: /api lists %d groups", name, len(core))
		}
		if _, ok := discovery.GroupOf(v.Roots[proxy.RootGroups], "apps"); !ok {
			t.Errorf("%s: /apis lists no group apps", name)
		}
		if _, ok := discovery.GroupOf(v.Roots[proxy.RootGroups], customGroup); ok {
			t.Errorf("%s: the custom resource of the recording is not the release's own", name)
		}
		whole := slices.Concat(v.Bodies[:]...)
		sum := sha256.Sum256(whole)
		if want := "sha256:" + hex.EncodeToString(sum[:]); v.Document.Hash != want || v.Document.Bytes != len(whole) {
			t.Errorf("%s: %d bytes, %s; the bodies have %d, %s", name, v.Document.Bytes, v.Document.Hash, len(whole), want)
		}
	}
}

// TestBodiesAreAServers compares the bodies with other recordings, made of servers without a custom
// resource.
func TestBodiesAreAServers(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		root       proxy.Root
	}{
		{"v1.36.3", "v1.36.3.apis.json", proxy.RootGroups},
		{"v1.37.1", "v1.37.1.apis.json", proxy.RootGroups},
		{"v1.37.1", "api.json", proxy.RootCore},
	} {
		want, err := os.ReadFile("../../internal/answer/testdata/discovery/" + tt.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustGet(t, tt.name).Bodies[tt.root]; !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %s has %d", tt.name, len(got), tt.file, len(want))
		}
	}
}

// TestDocumentIsWhatDiscoverReturns runs discovery against a server that sends these bodies, as the
// engine does with a real server.
func TestDocumentIsWhatDiscoverReturns(t *testing.T) {
	for _, name := range Names() {
		v := mustGet(t, name)
		small := v.Small([]history.GVR{{Version: "v1", Resource: "pods"}, {Group: "apps", Version: "v1", Resource: "deployments"}})
		for _, v := range []*Version{v, small} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				root := proxy.RootGroups
				if r.URL.Path == "/api" {
					root = proxy.RootCore
				}
				w.Header().Set("Content-Type", discovery.AcceptV2)
				_, _ = w.Write(v.Bodies[root])
			}))
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := traffic.Discover(t.Context(), client.RESTClient())
			server.Close()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, v.Document) {
				t.Errorf("%s: Discover returns %d resources, %s, not %d, %s",
					name, len(got.Resources), got.Hash, len(v.Document.Resources), v.Document.Hash)
			}
		}
	}
}

func TestGetUnknown(t *testing.T) {
	for _, name := range []string{"", "1.37.1", "v1.37", "v1.33.0", "../v1.37.1"} {
		_, err := Get(name)
		if err == nil {
			t.Errorf("%q: no error", name)
			continue
		}
		for _, want := range []string{`"` + name + `"`, "v1.30.14", "v1.37.1", "documents/README.md"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: the error does not say %q: %v", name, want, err)
			}
		}
	}
}

// TestConcurrentUse makes many goroutines ask for the same versions at once. With -race it detects
// an unguarded cache, and without -race a release that is parsed twice.
func TestConcurrentUse(t *testing.T) {
	resources, err := Skew("v1.36.3", "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	const users = 8
	var whole, small [users]map[string]*Version
	var all sync.WaitGroup
	for i := range users {
		whole[i], small[i] = map[string]*Version{}, map[string]*Version{}
		all.Go(func() {
			for _, name := range Names() {
				v, err := Get(name)
				if err != nil {
					t.Error(err)
					return
				}
				whole[i][name], small[i][name] = v, v.Small(resources)
			}
		})
	}
	all.Wait()
	for i := range users {
		for _, name := range Names() {
			if whole[i][name] == nil || whole[i][name] != whole[0][name] || small[i][name] != small[0][name] {
				t.Errorf("%s: user %d has got another one", name, i)
			}
		}
	}
}
