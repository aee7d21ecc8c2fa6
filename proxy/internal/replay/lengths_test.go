package replay

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWhichRequestsHaveABody(t *testing.T) {
	content := io.NopCloser(strings.NewReader("x"))
	for _, c := range []struct {
		name   string
		body   io.ReadCloser
		length int64
		want   bool
	}{
		{"none", nil, 0, false}, {"none, of a length that is said", nil, 1, false}, {"none, of unknown length", nil, -1, false},
		{"http.NoBody", http.NoBody, 0, false}, {"http.NoBody, of a length that is said", http.NoBody, 1, false}, {"http.NoBody, of unknown length", http.NoBody, -1, false},
		{"no bytes", content, 0, false}, {"a byte", content, 1, true}, {"unknown length", content, -1, true},
	} {
		if got := New(&http.Request{Body: c.body, ContentLength: c.length}, 1) != nil; got != c.want {
			t.Errorf("%s: a body %t, want %t", c.name, got, c.want)
		}
	}
}

// counted counts the bytes that are read from it.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// A body of at most the bound is read in advance. Nothing is read of a longer body or of one with
// unknown length. A reader then gets the whole body, as often as the bound allows.
func TestPrefetchReadsUpToTheBound(t *testing.T) {
	const bound = 3000 // several times the first buffer
	for _, unknown := range []bool{false, true} {
		for _, size := range []int{1, 511, 512, 513, bound - 1, bound, bound + 1} {
			for name, way := range map[string]func(io.Reader) io.Reader{
				"at once": func(r io.Reader) io.Reader { return r }, "the end with the last byte": iotest.DataErrReader, "by halves": iotest.HalfReader,
			} {
				content := strings.Repeat("0123456789", bound)[:size]
				from := &counted{Reader: way(strings.NewReader(content))}
				r := &http.Request{Body: io.NopCloser(from), ContentLength: int64(size)}
				if unknown {
					r.ContentLength = -1
				}
				b := New(r, bound)
				if err := b.Prefetch(); err != nil || b.ClientErr() != nil {
					t.Errorf("%d bytes, %s: %v", size, name, err)
				}
				want := size
				if unknown || size > bound {
					want = 0
				}
				if from.read != want || len(b.kept) != want {
					t.Errorf("%d bytes, %s, unknown length %t: read %d of them, and %d are kept; want %d", size, name, unknown, from.read, len(b.kept), want)
				}
				for again := range 2 {
					reader, err := b.Open()
					if err != nil {
						if again == 0 || size <= bound {
							t.Errorf("%d bytes, %s, unknown length %t, reading %d: %v", size, name, unknown, again, err)
						}
						continue
					}
					if got, err := io.ReadAll(reader); err != nil || string(got) != content {
						t.Errorf("%d bytes, %s, reading %d: %d bytes, %v", size, name, again, len(got), err)
					}
					if size <= bound && len(b.kept) != size {
						t.Errorf("%d bytes, %s, unknown length %t: %d are kept, want all", size, name, unknown, len(b.kept))
					}
					if n, err := reader.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("%d bytes, %s: %d, %v after the end", size, name, n, err)
					}
				}
				if got, want := b.Replayable(), size <= bound; got != want {
					t.Errorf("%d bytes, %s: can be sent again %t, want %t", size, name, got, want)
				}
				if b.Close(); b.kept != nil {
					t.Errorf("%d bytes, %s: %d are kept after Close", size, name, len(b.kept))
				}
			}
		}
	}
}

// A body that is shorter than announced is the client's error. A body of unknown length cannot be
// too short.
func TestBodiesShorterThanSaid(t *testing.T) {
	for _, c := range []struct {
		length int64
		want   error
	}{{4, nil}, {5, io.ErrUnexpectedEOF}, {-1, nil}} {
		for _, way := range []func(io.Reader) io.Reader{iotest.DataErrReader, iotest.OneByteReader} {
			b := New(&http.Request{Body: io.NopCloser(way(strings.NewReader("four"))), ContentLength: c.length}, 10)
			r, err := b.Open()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); string(got) != "four" || err != c.want || b.ClientErr() != c.want {
				t.Errorf("length %d: %q, %v, the client's error %v; want %v", c.length, got, err, b.ClientErr(), c.want)
			}
		}
	}
}

// If bytes come together with the end of the body, a reader gets the bytes first.
func TestTheEndComesAfterTheLastByte(t *testing.T) {
	b := New(&http.Request{Body: io.NopCloser(iotest.DataErrReader(strings.NewReader("ab"))), ContentLength: -1}, 10)
	r, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 10)
	if n, err := r.Read(buffer); n != 2 || err != nil {
		t.Errorf("first %d, %v", n, err)
	}
	if n, err := r.Read(buffer); n != 0 || err != io.EOF {
		t.Errorf("then %d, %v", n, err)
	}
	var request http.Request
	if err := b.Attach(&request); err != nil || request.GetBody == nil {
		t.Fatalf("the whole body is kept, and cannot be sent again: %v", err)
	}
	again, err := request.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(again); err != nil || string(got) != "ab" {
		t.Errorf("sent again: %q, %v", got, err)
	}
}
