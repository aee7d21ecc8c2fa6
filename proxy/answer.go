package proxy

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// copyBuffers are what answers are copied through: one each would be most of what a forwarded request allocates.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// answer passes a peer's answer on, byte for byte. What it breaks off in the middle is broken off for the client as well.
func (f *forwarding) answer(answer *http.Response) {
	if answer.StatusCode == http.StatusSwitchingProtocols {
		f.tunnel(answer)
		return
	}
	if answer.StatusCode < 200 { // "HTTP/1.1 007" can be read, and not written
		f.fail(apierrors.NewServiceUnavailable("a peer that serves this answered with something that is no HTTP status"))
		return
	}
	header := f.w.Header()
	copyAnswerHeader(header, answer.Header)
	announced := len(answer.Trailer)
	if announced > 0 {
		header["Trailer"] = []string{strings.Join(trailerNames(answer.Trailer), ", ")}
	}
	f.w.WriteHeader(answer.StatusCode)
	// Without a length, the body comes when it comes: an event of a watch must not wait for the next.
	flush := func() {}
	if f.stream || answer.ContentLength < 0 {
		controller := http.NewResponseController(f.w)
		flush = func() { _ = controller.Flush() } // a writer that cannot does what it can
	}
	if f.stream {
		flush() // a watch on which nothing happens has begun all the same
	}
	if err := copyBody(f.w, answer.Body, flush); err != nil {
		panic(http.ErrAbortHandler)
	}
	answer.Body.Close() // now, so that the trailers are there
	if len(answer.Trailer) == 0 {
		return
	}
	// Forces chunking, which trailers need.
	_ = http.NewResponseController(f.w).Flush()
	for _, name := range trailerNames(answer.Trailer) {
		if len(answer.Trailer) == announced {
			header[name] = answer.Trailer[name]
		} else {
			header[http.TrailerPrefix+name] = answer.Trailer[name]
		}
	}
}

// trailerNames are the names of the trailers that may be passed on, sorted.
func trailerNames(t http.Header) []string {
	names := slices.Sorted(maps.Keys(t))
	return slices.DeleteFunc(names, isHopHeader)
}

// copyAnswerHeader copies the headers of an answer but those that are a matter between neighbours. A header that a filter of this server
// has set already is replaced by the peer's.
func copyAnswerHeader(to, from http.Header) {
	listed, _ := connectionOptions(from, true)
	for name, values := range from { // in any order
		if !hopByHop(name) && !isHopHeader(name) && !slices.Contains(listed, name) {
			to[name] = values
		}
	}
}

// copyBody copies until the end. An error is either side's.
func copyBody(to io.Writer, from io.Reader, flush func()) error {
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			flush()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
