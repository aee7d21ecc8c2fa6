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

// gzipFrom is the size in bytes from which a body is compressed for clients that want it. A kube-apiserver compresses from
// 128 KiB, once for every answer; here it is done once for all of them.
const gzipFrom = 4 << 10

// representation is one encoding of a document: the bytes and what the header says of them. It is immutable.
type representation struct {
	contentType  string
	cacheControl string
	etag         string // quoted
	body         []byte
	compressed   func() []byte
}

// newRepresentation makes a representation. The entity tag is that of the body, as in kube-apiservers (etag.go), if tag is empty.
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

// hashOf is the form of entity tags in kube-apiservers: SHA-512 in upper case.
func hashOf(body []byte) string { return fmt.Sprintf("%X", sha512.Sum512(body)) }

// serve answers GET and HEAD. A compressed body has an entity tag of its own (RFC 9110, 8.8.3.3), and an answer varies by
// Accept-Encoding even when it is not compressed (RFC 9110, 12.5.5).
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
		_, _ = w.Write(body) // the client has gone; there is nobody to tell
	}
}

// readOnly answers 405 to what is neither GET nor HEAD, and reports whether the request goes on.
func readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	writeStatus(w, r, metav1.Status{
		Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("discovery is only read: %s is not possible, GET and HEAD are", r.Method),
	})
	return false
}

// writeStatus answers with an error in JSON, whatever the client accepts: nothing else may fit.
func writeStatus(w http.ResponseWriter, r *http.Request, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status = metav1.StatusFailure
	body, err := json.MarshalIndent(status, "", "  ")
	if err != nil { // strings and numbers only: cannot be
		http.Error(w, status.Message, int(status.Code))
		return
	}
	w.Header()["Vary"] = []string{"Accept", "Accept-Encoding"}
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(status.Code))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
