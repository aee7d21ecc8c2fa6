package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy/discovery"
)

func TestLegacyListsHaveStorageVersionHashes(t *testing.T) {
	list := func(hashes map[string]string) string {
		var resources []string
		for _, name := range []string{"jobs", "jobs/status", "cronjobs"} {
			if hash, ok := hashes[name]; ok {
				resources = append(resources, fmt.Sprintf(`{"name":%q,"kind":"X","verbs":["get"],"storageVersionHash":%q}`, name, hash))
			}
		}
		return `{"kind":"APIResourceList","groupVersion":"batch/v1","resources":[` + strings.Join(resources, ",") + `]}`
	}
	for name, c := range map[string]struct {
		peer string
		err  error
		want map[string]string
	}{
		"those of the local server, and those of the peer for its own resources": {
			peer: list(map[string]string{"jobs": "peer-jobs", "cronjobs": "peer-cronjobs"}), want: map[string]string{"jobs": "own-jobs", "cronjobs": "peer-cronjobs"},
		},
		"the local server's if the peer cannot be asked": {err: errors.New("it could not be reached"), want: map[string]string{"jobs": "own-jobs"}},
		"the local server's if the peer's is broken":     {peer: "<html>", want: map[string]string{"jobs": "own-jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			d := newDescribed(t, nil, FetchResult{ID: "a", Incarnation: "1", Version: "v1.37.1", Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: withVerbs(groups(jobs, cronjobs))}}})
			d.config.Document = func(_ context.Context, p PeerView, path string) ([]byte, string, error) {
				asked++
				if p.ID != "a" || path != "/apis/batch/v1" {
					t.Errorf("%s is asked for %s", p.ID, path)
				}
				return []byte(c.peer), "", c.err
			}
			d.local.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/batch/v1" || r.Header.Get("Accept") != "application/json" {
					t.Errorf("the local server is asked for %s in %q", r.URL, r.Header.Get("Accept"))
				}
				io.WriteString(w, list(map[string]string{"jobs": "own-jobs", "cronjobs": "own-cronjobs"}))
			})
			for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"} {
				got := d.ask("GET", "/apis/batch/v1/", "", "Accept", accept)
				hashes := map[string]string{}
				for _, r := range decoded[*metav1.APIResourceList](t, got.Header().Get("Content-Type"), got.Body.Bytes()).APIResources {
					if r.StorageVersionHash != "" {
						hashes[r.Name] = r.StorageVersionHash
					}
				}
				if diff := cmp.Diff(c.want, hashes); diff != "" || got.Code != 200 {
					t.Errorf("%s: %d, hashes (-want +got):\n%s", accept, got.Code, diff)
				}
			}
			if asked != 1 {
				t.Errorf("the peer was asked %d times", asked)
			}
		})
	}
	t.Run("all are a peer's if only peers have the version", func(t *testing.T) {
		next := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Versions: []apidiscoveryv2.APIVersionDiscovery{
			{Version: "v2", Resources: withVerbs(groups(jobs))[0].Versions[0].Resources}}}
		d := newDescribed(t, nil, FetchResult{ID: "a", Incarnation: "1", Version: "v1.37.1", Roots: [roots]RootResult{{}, {Groups: discovery.Groups{next}}}})
		d.config.Document = func(context.Context, PeerView, string) ([]byte, string, error) {
			return []byte(list(map[string]string{"jobs": "peer-jobs"})), "", nil
		}
		d.local.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the local server was asked for %s", r.URL) })
		got := d.ask("GET", "/apis/batch/v2", "", "Accept", "application/json")
		if r := decoded[*metav1.APIResourceList](t, "application/json", got.Body.Bytes()).APIResources; len(r) != 1 || r[0].StorageVersionHash != "peer-jobs" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}
