package discovery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
)

func mergedDocument(t testing.TB) *Document {
	return NewDocument("/apis", Merge(recordedSources(t, "apis")))
}

// provider passes groups to upstream's handler.
type provider map[string][]apidiscoveryv2.APIGroupDiscovery

func (p provider) GetPeerResources() map[string][]apidiscoveryv2.APIGroupDiscovery { return p }

// TestDocumentEqualsUpstream compares a document with upstream's own handler for the same groups.
func TestDocumentEqualsUpstream(t *testing.T) {
	sources := recordedSources(t, "apis")
	manager := aggregated.NewResourceManager("apis")
	manager.SetGroups(sources[0].Groups)
	local := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/apis", nil)
	r.Header.Set("Accept", AcceptV2)
	manager.ServeHTTP(local, r)
	groups, err := Decode(local.Header().Get("Content-Type"), local.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	peers := provider{}
	set := []Source{{Server: "local", Local: true, Groups: groups}}
	for _, s := range sources[1:] {
		peers[s.Server] = s.Groups
		set = append(set, s)
	}
	upstream := aggregated.NewPeerAggregatedDiscoveryHandler("local", manager, peers, "apis")
	ours := NewDocument("/apis", MergeConsensus(set))
	for _, accept := range []string{AcceptV2, strings.Replace(AcceptV2, "json", "yaml", 1), strings.Replace(AcceptV2, "json", "vnd.kubernetes.protobuf", 1)} {
		want, got := get(upstream.ServeHTTP, accept), get(ours.ServeHTTP, accept)
		if !bytes.Equal(want.Body.Bytes(), got.Body.Bytes()) || want.Code != got.Code {
			t.Errorf("%s: %d and %d, bodies differ:\n%s", accept, want.Code, got.Code, cmp.Diff(want.Body.String(), got.Body.String()))
		}
		for _, name := range []string{"Content-Type", "Cache-Control", "Vary"} {
			if w, g := want.Header().Get(name), got.Header().Get(name); w != g {
				t.Errorf("%s: %s is %q, upstream's is %q", accept, name, g, w)
			}
		}
		if w := want.Header().Get("ETag"); accept == AcceptV2 && (w != got.Header().Get("ETag") || w != ours.ETag()) {
			t.Errorf("ETag is %s, of the document %s, upstream's is %s", got.Header().Get("ETag"), ours.ETag(), w)
		}
	}
}

func TestDocumentOfTheSameFactsIsTheSame(t *testing.T) {
	sources := recordedSources(t, "apis")
	a := NewDocument("/apis", Merge(sources))
	for i := range sources {
		sources[i].Local = i == 2
		sources[i].Groups = copied(sources[i].Groups)
	}
	sources[0], sources[3] = sources[3], sources[0]
	b := NewDocument("/apis", Merge(sources))
	if a.ETag() != b.ETag() || len(a.ETag()) != 2+128 {
		t.Errorf("ETags %s and %s", a.ETag(), b.ETag())
	}
	for _, accept := range []string{AcceptV2, AcceptV2Beta1, "", "application/yaml"} {
		if x, y := get(a.ServeHTTP, accept), get(b.ServeHTTP, accept); x.Body.String() != y.Body.String() || !cmp.Equal(x.Header(), y.Header()) {
			t.Errorf("%s: differs", accept)
		}
	}
	if c := NewDocument("/apis", sources[0].Groups); c.ETag() == a.ETag() {
		t.Error("other groups have the same ETag")
	}
}

func TestDocumentConditionalAndCompressed(t *testing.T) {
	d := mergedDocument(t)
	tags := map[string]string{}
	for _, accept := range []string{AcceptV2, AcceptV2 + ";pretty=1", AcceptV2Beta1, "application/vnd.kubernetes.protobuf", "application/yaml", ""} {
		plain := get(d.ServeHTTP, accept)
		packed := get(d.ServeHTTP, accept, "Accept-Encoding", "gzip")
		if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" && plain.Body.Len() >= gzipFrom {
			t.Errorf("%s: encodings %q and %q", accept, plain.Header().Get("Content-Encoding"), packed.Header().Get("Content-Encoding"))
		}
		for kind, w := range map[string]*httptest.ResponseRecorder{"plain": plain, "gzip": packed} {
			name := accept + " " + kind
			if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s: Content-Length %s of %d bytes", name, got, w.Body.Len())
			}
			if got := strings.Join(w.Header().Values("Vary"), ","); got != "Accept,Accept-Encoding" {
				t.Errorf("%s: Vary %q", name, got)
			}
			tag := w.Header().Get("ETag")
			if other, ok := tags[tag]; ok && w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s and %s have the same ETag", name, other)
			}
			tags[tag] = name
			encoding := map[string]string{"plain": "identity", "gzip": "gzip"}[kind]
			same := get(d.ServeHTTP, accept, "If-None-Match", `"x", W/`+tag, "Accept-Encoding", encoding)
			if same.Code != http.StatusNotModified || same.Body.Len() != 0 || same.Header().Get("ETag") != tag || same.Header().Get("Content-Type") != "" {
				t.Errorf("%s: If-None-Match gives %d, %d bytes, %v", name, same.Code, same.Body.Len(), same.Header())
			}
			if got := get(d.ServeHTTP, accept, "If-None-Match", `"x"`); got.Code != http.StatusOK || got.Body.Len() == 0 {
				t.Errorf("%s: another tag gives %d", name, got.Code)
			}
		}
		if packed.Header().Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(r); err != nil || !bytes.Equal(body, plain.Body.Bytes()) {
				t.Errorf("%s: unpacked differs (%v)", accept, err)
			}
		}
	}
	if len(tags) < 10 {
		t.Errorf("only %d different ETags", len(tags))
	}
	small := NewDocument("/api", doc("/v1:pods"))
	if got := get(small.ServeHTTP, AcceptV2, "Accept-Encoding", "gzip"); got.Header().Get("Content-Encoding") != "" {
		t.Error("a small document is compressed")
	}
}

func TestDocumentMethodsAndErrors(t *testing.T) {
	d := mergedDocument(t)
	do := func(method, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/apis", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w
	}
	head, full := do(http.MethodHead, AcceptV2), do(http.MethodGet, AcceptV2)
	if head.Body.Len() != 0 || !cmp.Equal(head.Header(), full.Header()) || head.Code != http.StatusOK {
		t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}
	for _, c := range []struct {
		method, accept string
		code           int
		reason         metav1.StatusReason
	}{
		{http.MethodPost, AcceptV2, 405, metav1.StatusReasonMethodNotAllowed},
		{http.MethodOptions, "", 405, metav1.StatusReasonMethodNotAllowed},
		{http.MethodDelete, "text/html", 405, metav1.StatusReasonMethodNotAllowed},
		{http.MethodGet, "text/html", 406, metav1.StatusReasonNotAcceptable},
		{http.MethodGet, "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", 406, metav1.StatusReasonNotAcceptable},
	} {
		w := do(c.method, c.accept)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Fatalf("%s %s: %v: %s", c.method, c.accept, err, w.Body)
		}
		if w.Code != c.code || status.Code != int32(c.code) || status.Reason != c.reason || status.Kind != "Status" || status.Message == "" ||
			w.Header().Get("Content-Type") != "application/json" || w.Header().Get("ETag") != "" {
			t.Errorf("%s %s: %d, %v, %v", c.method, c.accept, w.Code, status, w.Header())
		}
		if c.code == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow %q", c.method, w.Header().Get("Allow"))
		}
	}
	if got := do(http.MethodHead, "text/html"); got.Code != 406 || got.Body.Len() != 0 {
		t.Errorf("HEAD that is not acceptable: %d, %d bytes", got.Code, got.Body.Len())
	}
}

func TestDocumentGroupsAndVersions(t *testing.T) {
	d := NewDocument("/apis", doc("apps/v1:deployments apps/v1beta1:deployments batch/v1:jobs"))
	none := func(w http.ResponseWriter, r *http.Request) {
		if d.ServeGroup(w, r, "policy") || d.ServeVersion(w, r, "apps", "v2") || d.ServeVersion(w, r, "policy", "v1") {
			t.Error("an unlisted group or version is served")
		}
	}
	if w := get(none, ""); w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("something was written: %v %s", w.Header(), w.Body)
	}
	w := get(func(w http.ResponseWriter, r *http.Request) { d.ServeGroup(w, r, "apps") }, AcceptV2+",application/json")
	want := `{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"},{"groupVersion":"apps/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}` + "\n"
	if w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v\n got %swant %s", w.Header(), w.Body, want)
	}
	for version, kind := range map[string]string{"v1": "apps/v1", "v1beta1": "apps/v1beta1"} {
		w := get(func(w http.ResponseWriter, r *http.Request) { d.ServeVersion(w, r, "apps", version) }, "")
		if !strings.Contains(w.Body.String(), `"groupVersion":"`+kind+`"`) {
			t.Errorf("%s: %s", version, w.Body)
		}
	}
	empty := NewDocument("/apis", nil)
	if got := get(empty.ServeHTTP, AcceptV2).Body.String(); !strings.Contains(got, `"items":[]`) {
		t.Errorf("an empty document is %s", got)
	}
	if got := get(empty.ServeHTTP, "").Body.String(); !strings.Contains(got, `"groups":[]`) {
		t.Errorf("an empty legacy list is %s", got)
	}
	if got := get(NewDocument("/api", nil).ServeHTTP, "").Body.String(); got != `{"kind":"APIVersions","versions":[],"serverAddressByClientCIDRs":[]}`+"\n" {
		t.Errorf("an empty /api is %s", got)
	}
}

// TestDocumentConcurrently is for the race detector, and checks that each encoding is made once.
func TestDocumentConcurrently(t *testing.T) {
	d := mergedDocument(t)
	accepts := []string{AcceptV2, AcceptV2Beta1, "", "application/yaml", "application/vnd.kubernetes.protobuf"}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			accept := accepts[i%len(accepts)]
			if w := get(d.ServeHTTP, accept, "Accept-Encoding", pick(newRandom(uint64(i)), "gzip", "identity")); w.Code != http.StatusOK {
				t.Errorf("%s: %d", accept, w.Code)
			}
			get(func(w http.ResponseWriter, r *http.Request) { d.ServeVersion(w, r, "apps", "v1") }, "")
			d.ETag()
		})
	}
	wg.Wait()
	if got, want := len(d.made), len(accepts)+1; got != want {
		t.Errorf("%d encodings were made, want %d", got, want)
	}
}
