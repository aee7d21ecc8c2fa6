package proxy

import (
	"bytes"
	"maps"
	"net/http"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// serveOpenAPIIndex answers /openapi/v3 with the local server's list and the versions that only
// peers serve. Their documents are routed to a peer (RoutingPolicy.DiscoveryPaths). Their URLs have
// no hash, so clients do not cache them for ever.
func (e *exchange) serveOpenAPIIndex() bool {
	if !e.table.LocalKnown() {
		return false
	}
	missing := e.peersOnly()
	if len(missing) == 0 {
		return false
	}
	own := &recorder{header: http.Header{}}
	e.h.config.Local.ServeHTTP(own, plainGet(e.r))
	index, err := discovery.DecodeOpenAPI(own.body.Bytes())
	if own.code != http.StatusOK || own.truncated || err != nil {
		return false // the local server answers with its own error
	}
	merged := maps.Clone(index)
	for _, path := range missing {
		u, good := discovery.OpenAPIURL(path)
		if _, ok := merged[path]; good && !ok {
			merged[path] = u
		}
	}
	document, err := discovery.NewOpenAPIDocument(merged)
	if err != nil {
		e.fail(err)
		return true
	}
	document.ServeHTTP(e.w, e.r)
	return true
}

// peersOnly are the paths below /openapi/v3 of versions that only peers serve.
func (e *exchange) peersOnly() []string {
	var missing []string
	for root := RootCore; root < roots; root++ {
		document, _ := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
		for _, g := range document.Groups() {
			for _, v := range g.Versions {
				switch {
				case e.table.local[root].index.Version(g.Name, v.Version):
				case root == RootCore:
					missing = append(missing, "api/"+v.Version)
				default:
					missing = append(missing, "apis/"+g.Name+"/"+v.Version)
				}
			}
		}
	}
	return missing
}

// plainGet asks for the whole uncompressed body, as the same user.
func plainGet(r *http.Request) *http.Request {
	plain := r.Clone(r.Context())
	plain.Method, plain.Body, plain.ContentLength = http.MethodGet, http.NoBody, 0
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range", "Accept"} {
		plain.Header.Del(name)
	}
	plain.Header.Set("Accept-Encoding", "identity")
	return plain
}

// recorder keeps an answer, with at most discovery.MaxBody bytes.
type recorder struct {
	header    http.Header
	code      int
	body      bytes.Buffer
	truncated bool
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > discovery.MaxBody {
		w.truncated = true
		return len(p), nil
	}
	return w.body.Write(p)
}
