package wire

import (
	"bytes"
	"net/http"
)

// Recorder is a response writer that keeps an answer. Make it with [NewRecorder].
type Recorder struct {
	Code      int // 0 if the answer has not begun
	Body      bytes.Buffer
	Truncated bool // the body is longer than is kept

	header http.Header
	most   int
}

// NewRecorder returns a recorder that keeps at most so many bytes of the body.
func NewRecorder(most int) *Recorder { return &Recorder{header: http.Header{}, most: most} }

// Header implements [http.ResponseWriter].
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *Recorder) WriteHeader(code int) {
	if r.Code == 0 && code >= http.StatusOK {
		r.Code = code
	}
}

// Write implements [http.ResponseWriter]. It never fails.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.Body.Len()+len(p) > r.most {
		r.Truncated = true
		return len(p), nil
	}
	return r.Body.Write(p)
}
