package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Built into any release, the proxy answers the same groups with the same bytes and tag, although
// the encoders of releases differ.
func TestDocumentsAreTheSameInAllReleases(t *testing.T) {
	group := func(name string) apidiscoveryv2.APIGroupDiscovery {
		return apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Versions:   []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}},
		}
	}
	document := discovery.NewDocument("/apis", discovery.Groups{group(""), group("example.com")})
	r := httptest.NewRequest(http.MethodGet, "/apis", nil)
	r.Header.Set("Accept", discovery.AcceptV2)
	w := httptest.NewRecorder()
	document.ServeHTTP(w, r)
	const want = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[` +
		`{"metadata":{},"versions":[{"version":"v1","freshness":"Current"}]},` +
		`{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current"}]}]}` + "\n"
	if w.Body.String() != want {
		t.Errorf("the document is\n%s, want\n%s", w.Body, want)
	}
	const tag = `"2EA353C350C8353276A8F26C8648764778B1720123F832AF8FE698A4CE1B4E91223C6D5DDAD7C4D102C9C567E5AF82D4C4B385310CF56852D8571A29B3854BF0"`
	if document.ETag() != tag {
		t.Errorf("the tag is %s, want %s", document.ETag(), tag)
	}
}
