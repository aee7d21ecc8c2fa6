package discovery

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gzipFrom is the size in bytes from which a body is compressed for clients that accept
// compression. A kube-apiserver compresses from 128 KiB, and does it for each answer. Here a body
// is compressed only once.
const gzipFrom = 4 << 10

// representation is one encoding of a document, with its headers. It is immutable.
type representation struct {
	contentType  string
	cacheControl string
	etag         string // quoted
	body         []byte
	compressed   func() []byte
}

// newRepresentation makes a representation. If tag is empty, it is the hash of the body.
func newRepresentation(contentType, cacheControl, tag string, body []byte) *representation {
	if tag == "" {
		tag = hashOf(body)
	}
	return &representation{
		contentType: contentType, cacheControl: cacheControl, etag: strconv.Quote(tag), body: body,
		compressed: sync.OnceValue(func() []byte {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write(body) // writing to memory cannot fail
			_ = w.Close()
			return b.Bytes()
		}),
	}
}

// hashOf returns the entity tag of a kube-apiserver: SHA-512 in upper case (etag.go).
func hashOf(body []byte) string { return fmt.Sprintf("%X", sha512.Sum512(body)) }

// serve answers GET and HEAD. A compressed body has its own entity tag (RFC 9110, 8.8.3.3). Vary
// contains Accept-Encoding even if the body is not compressed (12.5.5).
func (p *representation) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Vary"] = []string{"Accept", "Accept-Encoding"}
	header.Set("Cache-Control", p.cacheControl)
	body, etag, encoding := p.body, p.etag, ""
	if len(p.body) >= gzipFrom && acceptsGzip(r) {
		body, etag, encoding = p.compressed(), p.etag[:len(p.etag)-1]+`-gzip"`, "gzip"
	}
	header.Set("ETag", etag)
	if notModified(r, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
	}
	header.Set("Content-Type", p.contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only with the connection
	}
}

// readOnly reports whether the method is GET or HEAD, and answers 405 otherwise.
func readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	writeStatus(w, r, metav1.Status{
		Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("discovery is read-only: use GET or HEAD, not %s", r.Method),
	})
	return false
}

// writeStatus answers with an error. It always uses JSON, because the client may accept no format
// of ours.
func writeStatus(w http.ResponseWriter, r *http.Request, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status = metav1.StatusFailure
	body, _ := json.MarshalIndent(status, "", "  ") // only strings and numbers: this cannot fail
	w.Header()["Vary"] = []string{"Accept", "Accept-Encoding"}
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(status.Code))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
