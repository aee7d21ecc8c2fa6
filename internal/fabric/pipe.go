package fabric

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
)

// pipe is one of the two byte streams of a connection. The inlet reads it from src, toxiproxy's
// pipeline of toxics handles it, and the outlet writes it to dst.
//
// toxiproxy's own ends of the pipeline are not used, for three reasons. They close both directions
// when one has ended (TCP allows a half-closed connection, RFC 9293 section 3.6). They never send a
// reset. If a write fails, they block the pipeline for ever, which also blocks changes of the
// toxics.
type pipe struct {
	conn      *conn
	direction stream.Direction
	src, dst  *net.TCPConn

	in      atomic.Int64 // bytes read from src
	out     atomic.Int64 // bytes written to dst
	ended   atomic.Int32 // how src ended: running, inOrder, inError
	writing atomic.Int64 // number of the write in progress, 0 if there is none
	writes  int64        // counts writes; used only by the outlet
}

// The states of the source of a pipe.
const (
	running int32 = iota
	inOrder       // FIN
	inError       // RST, or closed by us
)

// bufferSize is toxiproxy's buffer size. It limits the chunks of toxics and so fault.Slicer.
const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// inlet is the source for toxiproxy.
type inlet struct{ *pipe }

// Read implements io.Reader; io.Copy prefers WriteTo.
func (i inlet) Read(p []byte) (int, error) { return i.src.Read(p) }

// WriteTo implements io.WriterTo. It feeds the pipeline until the source ends. Only the source can
// fail, because the pipeline takes everything. It is not an error if this package closes the
// source.
func (i inlet) WriteTo(pipeline io.Writer) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := i.src.Read(buf[:])
		if n > 0 {
			i.in.Add(int64(n))
			_, _ = pipeline.Write(buf[:n])
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			i.ended.Store(inOrder)
			return i.in.Load(), nil
		case errors.Is(err, net.ErrClosed):
			i.ended.Store(inError)
			return i.in.Load(), nil
		default:
			i.ended.Store(inError)
			return i.in.Load(), err
		}
	}
}

// outlet is the destination for toxiproxy.
type outlet struct{ *pipe }

// Write implements io.Writer; io.Copy prefers ReadFrom.
func (o outlet) Write(p []byte) (int, error) {
	// Count before the other end can see the bytes, so that the evidence includes all bytes seen.
	o.out.Add(int64(len(p)))
	o.conn.link.bytes[o.direction].Add(int64(len(p)))
	o.writes++
	o.writing.Store(o.writes)
	n, err := o.dst.Write(p)
	o.writing.Store(0)
	if missing := int64(len(p) - n); missing > 0 {
		o.out.Add(-missing)
		o.conn.link.bytes[o.direction].Add(-missing)
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom. It empties the pipeline until the pipeline ends, even if the
// destination is gone. A pipeline that is not emptied can be neither changed nor ended.
func (o outlet) ReadFrom(pipeline io.Reader) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	broken := false
	for {
		n, err := pipeline.Read(buf[:])
		if n > 0 && !broken {
			if _, werr := o.Write(buf[:n]); werr != nil {
				broken = true
				o.conn.end(resetting, nil)
			}
		}
		if errors.Is(err, io.EOF) {
			return o.out.Load(), nil
		}
		if err != nil {
			return o.out.Load(), err
		}
	}
}

// Close is called by toxiproxy when the pipeline has ended. It ends the destination in the same way
// as the source ended. If the stream ended before its source, or with missing bytes, a toxic broke
// it.
func (o outlet) Close() error {
	defer o.conn.pipeDone()
	ended := o.ended.Load()
	switch {
	case ended == running || ended == inOrder && o.in.Load() != o.out.Load():
		how := resetting
		if o.conn.link.carries(o.direction, fault.LimitDataToxic) {
			how = closing
		}
		o.conn.end(how, func(w *tally) bool { return w.breaks(o.direction) })
		return nil
	case ended == inError:
		o.conn.end(resetting, nil)
		return nil
	default:
		return o.dst.CloseWrite()
	}
}
