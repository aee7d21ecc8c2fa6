package replay

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func TestBodyReplay(t *testing.T) {
	const bound = 10
	for name, c := range map[string]struct {
		length int
		first  int // how many bytes the first reading takes, -1 for all
		again  bool
	}{
		"not at all":         {100, 0, true},
		"in part":            {100, 4, true},
		"up to the bound":    {100, bound, true},
		"beyond the bound":   {100, bound + 1, false},
		"whole and short":    {bound, -1, true},
		"whole and too long": {bound + 1, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			content := strings.Repeat("0123456789", 20)[:c.length]
			b := New(httptest.NewRequest("POST", "/", iotest.OneByteReader(strings.NewReader(content))), bound)
			one, err := b.Open()
			if err != nil {
				t.Fatal(err)
			}
			if c.first < 0 {
				got, err := io.ReadAll(one)
				if err != nil || string(got) != content {
					t.Errorf("first read %q, %v", got, err)
				}
			} else if _, err := io.ReadFull(one, make([]byte, c.first)); err != nil {
				t.Fatal(err)
			}
			one.Close()
			if _, err := one.Read(make([]byte, 1)); err != ErrClosed {
				t.Errorf("reading on after Close: %v", err)
			}
			if got := b.Replayable(); got != c.again {
				t.Fatalf("replayable: %v, want %v", got, c.again)
			}
			two, err := b.Open()
			if !c.again {
				if err == nil {
					t.Error("opened a body of which the beginning is lost")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(two); err != nil || string(got) != content {
				t.Errorf("second read %q, %v", got, err)
			}
		})
	}
}

func TestBodyTooLongToReplay(t *testing.T) {
	b := New(httptest.NewRequest("POST", "/", strings.NewReader("0123456789")), 3)
	early, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	late, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(early); err != nil || string(got) != "0123456789" {
		t.Errorf("read %q, %v", got, err)
	}
	if got, err := io.ReadAll(late); err != ErrSpent {
		t.Errorf("read %q, %v, want %v: never the middle of a body as its beginning", got, err, ErrSpent)
	}
}

func TestBodyKeepsBytesOfClosedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		b := New(httptest.NewRequest("POST", "/", reader), 3)
		given, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := given.Read(make([]byte, 8))
			ended <- err
		}()
		synctest.Wait() // if it were closed before it waits for the client, it would not have read
		go func() {
			given.Close()
			writer.Write([]byte("longer than kept"))
			writer.Close()
		}()
		if err := <-ended; err != ErrClosed {
			t.Errorf("the closed reader got %v, want %v", err, ErrClosed)
		}
		next, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(next); err != nil || string(got) != "longer than kept" {
			t.Errorf("the next reader got %q, %v", got, err)
		}
	})
}

func TestBodyClientError(t *testing.T) {
	failure := errors.New("malformed")
	b := New(httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(failure))), 3)
	if b.ClientErr() != nil {
		t.Error("an error before anything was read")
	}
	r, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != failure {
		t.Errorf("read %v, want %v", err, failure)
	}
	if b.ClientErr() != failure {
		t.Errorf("the client's error is %v, want %v", b.ClientErr(), failure)
	}
	var none *Body
	if New(httptest.NewRequest("POST", "/", nil), 3) != nil || !none.Replayable() || none.ClientErr() != nil {
		t.Error("a request without a body has one")
	}
}
