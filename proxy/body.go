package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// replayBound is how many bytes of a request's body are kept for another attempt. A longer body
// cannot be sent again once more than this was read.
const replayBound = 64 << 10

var (
	errBodyClosed = errors.New("read from a request body that was closed")
	errBodySpent  = errors.New("too much of the request's body was read for it to be sent again")
)

// body is a request's body that several attempts can read from its beginning, as long as it is
// short. It is read from the client only on demand, so a peer that answers early saves the client
// the rest.
//
// A transport may still read in a goroutine after its RoundTrip has failed. So each attempt has its
// own reader. A reader that was closed while it waited leaves what it read to the next reader.
type body struct {
	from  io.Reader
	bound int        // of kept
	turn  sync.Mutex // held while waiting for the client, which may take long

	waiting atomic.Bool // for the client
	mu      sync.Mutex  // guards what follows; taken after turn
	read    int         // bytes from the client
	now     func() time.Time
	last    time.Time // when bytes last came; zero: never
	kept    []byte
	spent   bool  // the beginning is no longer kept
	err     error // of reading from the client
}

// newBody returns the body of a request; nil if it has none. At most bound bytes are kept.
func newBody(r *http.Request, bound int, now func() time.Time) *body {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	return &body{from: r.Body, bound: bound, now: now}
}

// replayable reports whether the whole body can be read again.
func (b *body) replayable() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.spent
}

// clientErr is the error of reading from the client, nil if there was none.
func (b *body) clientErr() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// forever is the idle time of a body of which nothing has come.
const forever = time.Duration(1<<63 - 1)

// idle returns whether a reader waits for the client, and how long the client has sent nothing.
func (b *body) idle(now time.Time) (waiting bool, idle time.Duration) {
	if b == nil {
		return false, forever
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.IsZero() {
		return b.waiting.Load(), forever
	}
	return b.waiting.Load(), now.Sub(b.last)
}

// open returns a reader that begins at the first byte.
func (b *body) open() (*bodyReader, error) {
	if !b.replayable() {
		return nil, errBodySpent
	}
	return &bodyReader{body: b}, nil
}

// bodyReader reads a body once. It implements io.ReadCloser.
type bodyReader struct {
	body   *body
	at     int
	closed atomic.Bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if n, err, known := r.kept(p); known {
		return n, err
	}
	b := r.body
	b.turn.Lock()
	defer b.turn.Unlock()
	if n, err, known := r.kept(p); known { // another reader may have read them
		return n, err
	}
	b.waiting.Store(true)
	n, err := b.from.Read(p)
	b.waiting.Store(false)
	return r.took(p[:n], err)
}

// kept reads bytes that came earlier. known is false if the client must be asked.
func (r *bodyReader) kept(p []byte) (n int, err error, known bool) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.closed.Load():
		return 0, errBodyClosed, true
	case !b.spent && r.at < b.read:
		n = copy(p, b.kept[r.at:])
		r.at += n
		return n, nil, true
	case r.at < b.read: // the beginning was dropped before this reader read it
		return 0, errBodySpent, true
	case b.err != nil:
		return 0, b.err, true
	}
	return 0, nil, false
}

// took stores what came from the client.
func (r *bodyReader) took(p []byte, err error) (int, error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.read += len(p)
	if len(p) > 0 {
		b.last = b.now()
	}
	switch {
	case b.spent:
	case b.read <= b.bound || r.closed.Load():
		b.kept = append(b.kept, p...)
	default:
		b.spent, b.kept = true, nil
	}
	if r.closed.Load() {
		return 0, errBodyClosed
	}
	r.at += len(p)
	if len(p) > 0 && err == io.EOF {
		err = nil // the next Read returns it
	}
	return len(p), err
}

// Close ends this reader at once, even while a Read waits. It does not close the client's body: the
// server does that, and it would wait for the rest of the body.
func (r *bodyReader) Close() error {
	r.closed.Store(true)
	return nil
}
