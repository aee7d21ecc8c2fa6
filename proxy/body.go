package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// replayBound is how much of a request's body is kept, in bytes, so that it can be sent to another peer. A longer body is sent
// once it has been read beyond this.
const replayBound = 64 << 10

var (
	errBodyClosed = errors.New("read from a request body that was closed")
	errBodySpent  = errors.New("too much of the request's body was read for it to be sent again")
)

// body is a request's body that may be read several times from its beginning, as long as it is short. It is read from the
// client only when a reader asks for more, so a peer that answers early or asks for 100-continue spares the client the sending.
//
// A transport may still be reading in a goroutine of its own when its RoundTrip has failed. So each attempt gets a reader, all
// share what was read, and a reader that was closed while it waited leaves what it got to the next.
type body struct {
	from  io.Reader
	bound int        // of what is kept
	turn  sync.Mutex // held while waiting for the client, which may take long

	mu      sync.Mutex // of what follows; taken after turn
	waiting bool       // for the client
	read    int        // how much came from the client
	now     func() time.Time
	last    time.Time // when something last came; zero: never
	kept    []byte
	spent   bool  // more was read than is kept
	err     error // how reading from the client ended
}

// newBody returns the body of a request, of which at most bound bytes are kept; nil if it has none.
func newBody(r *http.Request, bound int, now func() time.Time) *body {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	return &body{from: r.Body, bound: bound, now: now}
}

// replayable reports whether the whole body can still be read.
func (b *body) replayable() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.spent
}

// clientErr is why the body could not be read from the client, nil if it could.
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

// forever is for how long nothing has come of a body of which nothing ever came.
const forever = time.Duration(1<<63 - 1)

// idle is whether the client is being waited for, and for how long nothing has come from it.
func (b *body) idle(now time.Time) (waiting bool, idle time.Duration) {
	if b == nil {
		return false, forever
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.IsZero() {
		return b.waiting, forever
	}
	return b.waiting, now.Sub(b.last)
}

func (b *body) wait(waiting bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = waiting
}

// open returns a reader of the whole body.
func (b *body) open() (*bodyReader, error) {
	if !b.replayable() {
		return nil, errBodySpent
	}
	return &bodyReader{body: b}, nil
}

// bodyReader is one reading of a body.
type bodyReader struct {
	body *body
	at   int

	mu     sync.Mutex
	closed bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if n, err, known := r.kept(p); known {
		return n, err
	}
	b := r.body
	b.turn.Lock()
	defer b.turn.Unlock()
	if n, err, known := r.kept(p); known { // by now
		return n, err
	}
	b.wait(true)
	n, err := b.from.Read(p)
	b.wait(false)
	return r.took(p[:n], err)
}

// kept reads what came from the client before, and reports whether that settles it.
func (r *bodyReader) kept(p []byte) (n int, err error, known bool) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.isClosed():
		return 0, errBodyClosed, true
	case !b.spent && r.at < b.read:
		n = copy(p, b.kept[r.at:])
		r.at += n
		return n, nil, true
	case r.at < b.read: // it was spent before this reading came to it
		return 0, errBodySpent, true
	case b.err != nil:
		return 0, b.err, true
	}
	return 0, nil, false
}

// took notes what came from the client.
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
	case b.read <= b.bound || r.isClosed():
		b.kept = append(b.kept, p...)
	default:
		b.spent, b.kept = true, nil
	}
	if r.isClosed() {
		return 0, errBodyClosed
	}
	r.at += len(p)
	if len(p) > 0 && err == io.EOF {
		err = nil // said at the next Read
	}
	return len(p), err
}

// Close ends this reading, and returns at once even while a Read waits. It does not close the client's body, which is the server's
// affair: that would wait for the rest of it.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *bodyReader) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
