// Package replay lets several attempts read a request's body from its beginning.
package replay

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Bound is how many bytes of a request's body are stored for another attempt. When more bytes than
// this were read, the body cannot be sent again. A kube-apiserver limits how many requests it
// handles at a time, and stores up to 3 MiB for a request that it serves itself.
const Bound = 64 << 10

var (
	// ErrClosed is the error of reading from a reader, or a body, that was closed.
	ErrClosed = errors.New("read from a request body that was closed")
	// ErrSpent means that the beginning of the body is no longer stored.
	ErrSpent = errors.New("too much of the request's body was read for it to be sent again")
)

// Body is a request's body that several attempts can read from its beginning, as long as it is
// short. The number of stored bytes grows with the bytes that have arrived, because a client can
// announce a body and not send it.
//
// A transport may still read in a goroutine after its RoundTrip has failed. So each attempt has its
// own reader. If a reader is closed while it waits, the next reader gets the bytes that it read.
//
// A nil Body is the body of a request without one. Its methods except Open may be called.
type Body struct {
	bound  int // how many bytes are stored at most
	from   io.Reader
	length int64
	turn   sync.Mutex // held while waiting for the client, which may take long

	mu     sync.Mutex // guards the fields below; locked after turn
	read   int        // bytes from the client
	kept   []byte
	newest *Reader
	spent  bool  // the beginning is no longer stored
	err    error // the error of reading from the client
}

// New returns the body of a request; nil if it has none. At most bound bytes are stored. The caller
// must close it.
func New(r *http.Request, bound int) *Body {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > int64(bound) {
		bound = 0
	}
	return &Body{bound: bound, from: r.Body, length: r.ContentLength}
}

// Prefetch reads a body whose announced length is short, before the request occupies a peer or a
// connection. It does nothing for a body of another length. Its error is the client's. It must not
// be called while a reader reads.
func (b *Body) Prefetch() error {
	if b == nil || b.length < 0 || b.length > int64(b.bound) {
		return nil
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	for {
		b.mu.Lock()
		if len(b.kept) == int(b.length) {
			b.err = io.EOF
		}
		if b.err != nil {
			defer b.mu.Unlock()
			return clientErr(b.err)
		}
		b.kept = slices.Grow(b.kept, min(512, int(b.length)-len(b.kept)))
		room := b.kept[len(b.kept):min(cap(b.kept), int(b.length))]
		b.mu.Unlock()
		n, err := b.from.Read(room)
		b.mu.Lock()
		b.kept = b.kept[:len(b.kept)+n]
		b.arrived(n, err)
		b.mu.Unlock()
	}
}

// arrived records the bytes and the error that came from the client.
func (b *Body) arrived(n int, err error) {
	b.read += n
	b.err = err
	if err == io.EOF && b.length >= 0 && int64(b.read) < b.length {
		b.err = io.ErrUnexpectedEOF // from a reader that is not net/http's
	}
}

// drop deletes the stored bytes.
func (b *Body) drop() { b.spent, b.kept = true, nil }

// Answered deletes the stored bytes if the last reader has read all of them: there is no other
// attempt.
func (b *Body) Answered() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest == nil || b.newest.at == b.read {
		b.drop()
	}
}

// Close deletes the stored bytes. Readers then fail.
func (b *Body) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
}

// Attach makes a request send the body from its beginning. The request has GetBody only if the
// whole body is stored. A transport should send a request without GetBody on a connection of its
// own: if another request causes the connection to be closed, the transport cannot send the body
// again.
func (b *Body) Attach(r *http.Request) error {
	if b == nil {
		r.Body, r.GetBody, r.ContentLength = nil, nil, 0
		return nil
	}
	reader, err := b.Open()
	if err != nil {
		return err
	}
	r.Body, r.GetBody = reader, nil
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == io.EOF && !b.spent {
		r.GetBody = func() (io.ReadCloser, error) { return b.Open() }
	}
	return nil
}

// Replayable reports whether the body can be read again from its beginning.
func (b *Body) Replayable() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.spent
}

// ClientErr is the error of reading from the client, nil if there was none.
func (b *Body) ClientErr() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return clientErr(b.err)
}

func clientErr(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// Open returns a reader that begins at the first byte. Its error is ErrSpent.
func (b *Body) Open() (*Reader, error) {
	if !b.Replayable() {
		return nil, ErrSpent
	}
	r := &Reader{body: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest = r
	return r, nil
}

// Reader reads a body once. It implements io.ReadCloser.
type Reader struct {
	body   *Body
	at     int
	closed atomic.Bool
}

func (r *Reader) Read(p []byte) (int, error) {
	if n, err, known := r.kept(p); known {
		return n, err
	}
	b := r.body
	b.turn.Lock()
	defer b.turn.Unlock()
	if n, err, known := r.kept(p); known { // another reader may have read these bytes
		return n, err
	}
	n, err := b.from.Read(p)
	return r.took(p[:n], err)
}

// kept reads stored bytes. known is false if the reader must wait for the client.
func (r *Reader) kept(p []byte) (n int, err error, known bool) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.closed.Load():
		return 0, ErrClosed, true
	case !b.spent && r.at < b.read:
		n = copy(p, b.kept[r.at:])
		r.at += n
		return n, nil, true
	case r.at < b.read: // the beginning was dropped before this reader read it
		return 0, ErrSpent, true
	case b.err != nil:
		return 0, b.err, true
	}
	return 0, nil, false
}

// took stores the bytes that came from the client.
func (r *Reader) took(p []byte, err error) (int, error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived(len(p), err)
	err = b.err
	switch {
	case b.spent:
	case b.read <= b.bound || r.closed.Load():
		b.kept = append(b.kept, p...)
	default:
		b.drop()
	}
	if r.closed.Load() {
		return 0, ErrClosed
	}
	r.at += len(p)
	if len(p) > 0 && err == io.EOF {
		err = nil // the next Read returns it
	}
	return len(p), err
}

// Close ends this reader at once, even while a Read waits. It does not close the client's body: the
// server does this, and closing would wait for the rest of the body.
func (r *Reader) Close() error {
	r.closed.Store(true)
	return nil
}
