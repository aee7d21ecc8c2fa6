package sidecar

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// anyClient is the range of clients for which /api names the server's own address. Other ranges are
// ranges of Services (pkg/controlplane, instance.go), whose address does not depend on the server.
const anyClient = "0.0.0.0/0"

// namesProxy makes the list of versions at /api name the proxy. The local server names itself, with
// a port that clients should not use (k8s.io/apiserver, pkg/endpoints/discovery/addresses.go).
type namesProxy struct {
	http.Handler        // the local server
	address      string // "host:port" of the proxy; "": the local server's answer stays as it is
}

func (n namesProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.address == "" || r.Method != http.MethodGet || strings.TrimSuffix(r.URL.Path, "/") != "/api" ||
		discovery.IsAggregated(r.Header.Get("Accept")) {
		n.Handler.ServeHTTP(w, r)
		return
	}
	answer := &bufferedAnswer{header: http.Header{}}
	n.Handler.ServeHTTP(answer, r)
	if body, ok := n.name(answer); ok {
		answer.body = *bytes.NewBuffer(body)
		answer.header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	answer.send(w)
}

// name returns the body with the proxy's address; false if the answer is not a list of versions.
func (n namesProxy) name(answer *bufferedAnswer) ([]byte, bool) {
	mediaType, _, err := mime.ParseMediaType(answer.header.Get("Content-Type"))
	if answer.status != http.StatusOK || err != nil || answer.header.Get("Content-Encoding") != "" {
		return nil, false
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, false
	}
	kind := metav1.SchemeGroupVersion.WithKind("APIVersions")
	kind.Group = ""
	decoded, _, err := info.Serializer.Decode(answer.body.Bytes(), &kind, nil)
	versions, ok := decoded.(*metav1.APIVersions)
	if err != nil || !ok {
		return nil, false
	}
	for i, at := range versions.ServerAddressByClientCIDRs {
		if at.ClientCIDR == anyClient {
			versions.ServerAddressByClientCIDRs[i].ServerAddress = n.address
		}
	}
	versions.TypeMeta = metav1.TypeMeta{Kind: kind.Kind} // as a kube-apiserver sets it, see package discovery
	encoder := info.Serializer
	if info.PrettySerializer != nil && bytes.Contains(answer.body.Bytes(), []byte("\n  ")) {
		encoder = info.PrettySerializer
	}
	var body bytes.Buffer
	if err := encoder.Encode(versions, &body); err != nil {
		return nil, false
	}
	return body.Bytes(), true
}
