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

// copyBuffers holds buffers for copying the bodies of answers to clients.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// answer passes a peer's answer on to the client, byte for byte. If the peer's answer breaks off,
// the client's answer breaks off too.
func (f *forwarding) answer(answer *http.Response) {
	if answer.StatusCode == http.StatusSwitchingProtocols {
		f.tunnel(answer)
		return
	}
	if answer.StatusCode < 200 || answer.StatusCode > 999 { // net/http can read such codes, but cannot write them
		f.fail(apierrors.NewServiceUnavailable("a peer that serves this answered with an invalid HTTP status"))
		return
	}
	header := f.w.Header()
	copyAnswerHeader(header, answer.Header)
	announced := len(answer.Trailer)
	if announced > 0 {
		header["Trailer"] = []string{strings.Join(trailerNames(answer.Trailer), ", ")}
	}
	f.w.WriteHeader(answer.StatusCode)
	// Flush each event of a watch at once: it must not wait in a buffer for the next event.
	flush := func() {}
	if f.stream || answer.ContentLength < 0 {
		controller := http.NewResponseController(f.w)
		flush = func() { _ = controller.Flush() } // a writer that cannot flush sends the bytes later
	}
	if f.stream {
		flush() // the client must learn that the watch has begun
	}
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	// The struct hides the other methods of the body. With them, io.CopyBuffer would not use the
	// buffer.
	if _, err := io.CopyBuffer(flushingWriter{f.w, flush}, struct{ io.Reader }{answer.Body}, buffer[:]); err != nil {
		panic(http.ErrAbortHandler)
	}
	answer.Body.Close() // fills answer.Trailer
	if len(answer.Trailer) == 0 {
		return
	}
	// Trailers need chunking, and a flush forces it.
	_ = http.NewResponseController(f.w).Flush()
	for _, name := range trailerNames(answer.Trailer) {
		if len(answer.Trailer) == announced {
			header[name] = answer.Trailer[name]
		} else {
			header[http.TrailerPrefix+name] = answer.Trailer[name]
		}
	}
}

// trailerNames returns the sorted names of the trailers that may be passed on.
func trailerNames(t http.Header) []string {
	names := slices.Sorted(maps.Keys(t))
	return slices.DeleteFunc(names, isHopHeader)
}

// copyAnswerHeader copies end-to-end headers. They replace headers of the same name that a filter
// of this server has set.
func copyAnswerHeader(to, from http.Header) {
	listed, _ := connectionOptions(from, true)
	for name, values := range from { // in any order
		if !hopByHop(name) && !isHopHeader(name) && !slices.Contains(listed, name) {
			to[name] = values
		}
	}
}

// flushingWriter flushes after each write.
type flushingWriter struct {
	to    io.Writer
	flush func()
}

func (w flushingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err == nil {
		w.flush()
	}
	return n, err
}
