package discovery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// OpenAPIIndex is the index of OpenAPI v3 documents at /openapi/v3: from a path ("apis/apps/v1") to the server-relative URL of its
// document ("/openapi/v3/apis/apps/v1?hash=…"). It is never changed once it is made.
type OpenAPIIndex map[string]string

type openAPIEntry struct {
	ServerRelativeURL string `json:"serverRelativeURL"`
}

// DecodeOpenAPI reads an index in JSON. An entry whose URL does not stay below /openapi/v3 of the server that is asked is left
// out: clients would follow it elsewhere. It is safe to call with a body that nobody vouches for.
func DecodeOpenAPI(body []byte) (OpenAPIIndex, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("decode OpenAPI index: the body has %d bytes, more than the %d that are read", len(body), MaxBody)
	}
	var document struct {
		Paths map[string]openAPIEntry `json:"paths"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("decode OpenAPI index: %w", err)
	}
	if document.Paths == nil {
		return nil, fmt.Errorf("decode OpenAPI index: there are no paths in it; is it the answer of /openapi/v3?")
	}
	index := make(OpenAPIIndex, len(document.Paths))
	for path, entry := range document.Paths { // into a map: the order does not matter
		if staysInOpenAPI(entry.ServerRelativeURL) {
			index[path] = entry.ServerRelativeURL
		}
	}
	return index, nil
}

// OpenAPIURL is the URL of the document at a path of the index, without a hash; false if clients would be led elsewhere by it, as by that of a
// group that a peer calls "..".
func OpenAPIURL(path string) (string, bool) {
	u := "/openapi/v3/" + path
	return u, staysInOpenAPI(u) && !strings.Contains(path, "?")
}

// staysInOpenAPI rejects other hosts, dots that climb, and what clients might read as either (backslashes, escapes, controls).
func staysInOpenAPI(u string) bool {
	path, _, _ := strings.Cut(u, "?")
	if !strings.HasPrefix(path, "/openapi/v3/") || strings.ContainsAny(path, `\%#`) {
		return false
	}
	for _, r := range u {
		if r <= ' ' || r == 0x7f {
			return false
		}
	}
	for _, part := range strings.Split(path, "/") {
		if part == ".." || part == "." {
			return false
		}
	}
	return true
}

// OpenAPIDocument answers requests for an index. It is immutable and safe for concurrent use.
type OpenAPIDocument struct{ representation *representation }

// NewOpenAPIDocument encodes an index.
func NewOpenAPIDocument(index OpenAPIIndex) (*OpenAPIDocument, error) {
	paths := make(map[string]openAPIEntry, len(index))
	for path, u := range index {
		paths[path] = openAPIEntry{u}
	}
	body, err := json.Marshal(map[string]any{"paths": paths}) // sorted by path
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI index: %w", err)
	}
	return &OpenAPIDocument{newRepresentation("application/json", "no-cache, private", "", body)}, nil
}

// ETag returns the quoted entity tag of the index: the hash of its bytes, as a kube-apiserver computes it.
func (d *OpenAPIDocument) ETag() string { return d.representation.etag }

// ServeHTTP answers GET and HEAD with the index, in JSON whatever Accept says, as a kube-apiserver does.
func (d *OpenAPIDocument) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if readOnly(w, r) {
		d.representation.serve(w, r)
	}
}
