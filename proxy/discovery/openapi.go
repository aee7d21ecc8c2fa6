package discovery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// OpenAPIIndex is the index of OpenAPI v3 documents at /openapi/v3. It maps a path ("apis/apps/v1")
// to the server-relative URL of its document ("/openapi/v3/apis/apps/v1?hash=…"). It must not be
// changed.
type OpenAPIIndex map[string]string

type openAPIEntry struct {
	ServerRelativeURL string `json:"serverRelativeURL"`
}

// DecodeOpenAPI reads an index in JSON. It omits an entry if its URL is not below /openapi/v3 of
// the same server, because clients would follow the URL. The body need not be trusted.
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
		return nil, fmt.Errorf("decode OpenAPI index: it has no paths; is it the answer of /openapi/v3?")
	}
	index := make(OpenAPIIndex, len(document.Paths))
	for path, entry := range document.Paths {
		if staysInOpenAPI(entry.ServerRelativeURL) {
			index[path] = entry.ServerRelativeURL
		}
	}
	return index, nil
}

// Hash returns the hash in the URL of a path, "" if there is none. A kube-apiserver changes the
// hash whenever it changes the document.
func (x OpenAPIIndex) Hash(path string) string {
	_, query, _ := strings.Cut(x[path], "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get("hash")
}

// OpenAPIURL returns the URL, without a hash, of the document at a path of the index. It returns
// false if the URL would not stay below /openapi/v3, for example because a peer has a group "..".
func OpenAPIURL(path string) (string, bool) {
	u := "/openapi/v3/" + path
	return u, staysInOpenAPI(u) && !strings.Contains(path, "?")
}

// staysInOpenAPI rejects other hosts, "." and "..". It also rejects characters that clients may
// read as these (backslashes, escapes, control characters).
func staysInOpenAPI(u string) bool {
	path, _, _ := strings.Cut(u, "?")
	if !strings.HasPrefix(path, "/openapi/v3/") || strings.ContainsAny(path, `\%#`) {
		return false
	}
	if strings.ContainsFunc(u, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false
	}
	parts := strings.Split(path, "/")
	return !slices.Contains(parts, ".") && !slices.Contains(parts, "..")
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

// ServeHTTP answers GET and HEAD with the index. Like a kube-apiserver, it ignores Accept.
func (d *OpenAPIDocument) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if readOnly(w, r) {
		d.representation.serve(w, r)
	}
}
