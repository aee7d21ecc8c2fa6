package replay

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// The number of stored bytes grows with the bytes that have arrived, not with the announced length.
func TestMemoryIsTakenForWhatArrived(t *testing.T) {
	for _, arrived := range []int{0, 1, 600, 5000, Bound - 1} {
		reader, writer := io.Pipe()
		r := httptest.NewRequest("POST", "/", reader)
		r.ContentLength = Bound
		b := New(r, Bound)
		ended := make(chan error, 1)
		go func() { ended <- b.Prefetch() }()
		if _, err := io.WriteString(writer, strings.Repeat("x", arrived)); err != nil {
			t.Fatal(err)
		}
		writer.Close()
		if err := <-ended; err != io.ErrUnexpectedEOF {
			t.Errorf("a body that ends early: %v, want %v", err, io.ErrUnexpectedEOF)
		}
		if most := max(1024, 4*(arrived+1)); cap(b.kept) > most {
			t.Errorf("of %d announced bytes %d have arrived, and %d are taken, want at most %d", Bound, arrived, cap(b.kept), most)
		}
		b.Close()
	}
}

// After the answer, nothing is stored for a request that is read slowly. A server may answer before
// any reader reads the body.
func TestAnsweredKeepsNothing(t *testing.T) {
	for _, read := range []bool{true, false} {
		b := New(httptest.NewRequest("POST", "/", strings.NewReader("content")), Bound)
		if err := b.Prefetch(); err != nil {
			t.Fatal(err)
		}
		if read {
			r, err := b.Open()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			b.Answered() // before the whole body is sent
			if got, err := io.ReadAll(r); string(got) != "tent" || err != nil {
				t.Errorf("the rest of the body is %q, error %v", got, err)
			}
		}
		if b.Answered(); b.kept != nil {
			t.Errorf("%d bytes are kept after the answer, read %t", len(b.kept), read)
		}
	}
}
