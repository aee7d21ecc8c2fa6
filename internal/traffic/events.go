package traffic

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
)

// eventCounter counts watch events in the bytes of the stream, as they pass by. The client that decodes the stream
// could not tell in time: the operation is recorded at the last byte, before the client has seen the last event.
type eventCounter interface {
	count([]byte)
	seen() int
}

func newEventCounter(contentType string) eventCounter {
	if strings.HasPrefix(contentType, runtime.ContentTypeProtobuf) {
		return &frameCounter{}
	}
	return &lineCounter{}
}

// lineCounter counts JSON events: one on a line.
type lineCounter struct{ n atomic.Int64 }

func (c *lineCounter) count(p []byte) { c.n.Add(int64(bytes.Count(p, []byte{'\n'}))) }
func (c *lineCounter) seen() int      { return int(c.n.Load()) }

// frameCounter counts protobuf events: each is preceded by its length, four bytes, big endian
// (k8s.io/apimachinery/pkg/util/framer). Frames that were cut short are not counted.
type frameCounter struct {
	n      atomic.Int64
	header []byte // of the next frame, as far as it has come
	left   uint32 // bytes of the current frame still to come
}

func (c *frameCounter) count(p []byte) {
	for len(p) > 0 {
		if c.left == 0 {
			take := min(4-len(c.header), len(p))
			c.header, p = append(c.header, p[:take]...), p[take:]
			if len(c.header) < 4 {
				return
			}
			c.left, c.header = binary.BigEndian.Uint32(c.header), c.header[:0]
			if c.left == 0 {
				c.n.Add(1)
			}
			continue
		}
		take := min(uint64(c.left), uint64(len(p)))
		p, c.left = p[take:], c.left-uint32(take)
		if c.left == 0 {
			c.n.Add(1)
		}
	}
}

func (c *frameCounter) seen() int { return int(c.n.Load()) }
