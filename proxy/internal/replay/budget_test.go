package replay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func bodyOf(budget *Budget, caller, content string) *Body {
	return New(httptest.NewRequest("POST", "/", strings.NewReader(content)), Options{Bound: Bound, Budget: budget, Caller: caller})
}

// One caller may keep a quarter of the budget. Its other bodies arrive too, but cannot be sent
// again. The bodies of another caller can.
func TestBudgetIsShared(t *testing.T) {
	const size, n = 1 << 10, 64
	budget := &Budget{Bytes: n * size}
	content := strings.Repeat("x", size)
	repeatable := func(caller string) (bool, *Body) {
		b := bodyOf(budget, caller, content)
		if err := b.Prefetch(); err != nil {
			t.Fatal(err)
		}
		var r http.Request
		if err := b.Attach(&r); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != content {
			t.Fatalf("%d bytes arrived, error %v", len(got), err)
		}
		return r.GetBody != nil, b
	}
	kept := 0
	var bodies []*Body
	for range n {
		again, b := repeatable("greedy")
		if again {
			kept++
		}
		bodies = append(bodies, b)
	}
	if kept < n/5 || kept > n/4+1 {
		t.Errorf("%d of %d bodies of one caller can be sent again, want a quarter", kept, n)
	}
	again, b := repeatable("modest")
	if !again {
		t.Error("the body of another caller cannot be sent again")
	}
	for _, b := range append(bodies, b) {
		b.Close()
		b.Close() // a second time does nothing
	}
	if budget.Used() != 0 || budget.pool.Callers() != 0 {
		t.Errorf("%d bytes of %d callers are still counted", budget.Used(), budget.pool.Callers())
	}
}

// The number of stored bytes grows with the bytes that have arrived, not with the announced length.
func TestBudgetIsTakenForWhatArrived(t *testing.T) {
	budget := NewBudget()
	for _, arrived := range []int{0, 1, 600, 5000, Bound - 1} {
		reader, writer := io.Pipe()
		r := httptest.NewRequest("POST", "/", reader)
		r.ContentLength = Bound
		b := New(r, Options{Bound: Bound, Budget: budget, Caller: "a"})
		ended := make(chan error, 1)
		go func() { ended <- b.Prefetch() }()
		if _, err := io.WriteString(writer, strings.Repeat("x", arrived)); err != nil {
			t.Fatal(err)
		}
		if most := max(512, 4*(arrived+1)); budget.Used() > most {
			t.Errorf("of %d announced bytes %d have arrived, and %d are taken, want at most %d", Bound, arrived, budget.Used(), most)
		}
		writer.Close()
		if err := <-ended; err != io.ErrUnexpectedEOF {
			t.Errorf("a body that ends early: %v, want %v", err, io.ErrUnexpectedEOF)
		}
		b.Close()
	}
}

// A long body, or one of unknown length, is not read in advance and not stored.
func TestOnlyShortBodiesAreReadFirst(t *testing.T) {
	for _, length := range []int64{-1, Bound + 1} {
		budget := NewBudget()
		read := 0
		r := httptest.NewRequest("POST", "/", readerFunc(func(p []byte) (int, error) {
			read += len(p)
			return len(p), nil
		}))
		r.ContentLength = length
		b := New(r, Options{Bound: Bound, Budget: budget, Caller: "a"})
		if err := b.Prefetch(); err != nil || read != 0 {
			t.Errorf("length %d: %d bytes were read first, error %v", length, read, err)
		}
		reader, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if keeps := budget.Used() > 0; keeps != (length < 0) { // a body that is known to be too long cannot be sent again
			t.Errorf("length %d: %d bytes are kept of the first 100", length, budget.Used())
		}
		b.Close()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// After the answer, nothing is stored for a request that is read slowly.
func TestAnsweredKeepsNothing(t *testing.T) {
	budget := NewBudget()
	b := bodyOf(budget, "a", "content")
	if err := b.Prefetch(); err != nil {
		t.Fatal(err)
	}
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
	if b.Answered(); budget.Used() != 0 {
		t.Errorf("%d bytes are kept after the answer", budget.Used())
	}
}

// A server may answer before any reader reads the body.
func TestAnsweredBeforeAnyReaderKeepsNothing(t *testing.T) {
	budget := NewBudget()
	b := bodyOf(budget, "a", "content")
	if err := b.Prefetch(); err != nil {
		t.Fatal(err)
	}
	if b.Answered(); budget.Used() != 0 {
		t.Errorf("%d bytes are kept", budget.Used())
	}
}
