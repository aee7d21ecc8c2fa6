package history

import (
	"bytes"
	"reflect"
	"testing"
)

// Every history that Read accepts can be recorded and read again without a change.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	want := sample()
	r := NewRecorder(&b, want.Run, func() Time { return want.End.At })
	recordAll(want, r)
	if err := r.Close(nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(lines(runLine, endLine)))
	f.Add([]byte(lines(runLine, `{"operation":{"id":"1","server":"a","gvr":{"group":"g"}}}`)))
	f.Add([]byte(lines(runLine, `{"served":{"server":"a","document":"x"}}`, `{"document":{"hash":"x","resources":null}}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		first := rewrite(t, h)
		again, err := Read(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v\n%s", err, first)
		}
		if second := rewrite(t, again); !bytes.Equal(first, second) {
			t.Errorf("written\n%s\nread and written again\n%s", first, second)
		}
		if !reflect.DeepEqual(h.Operations, again.Operations) {
			t.Errorf("operations\n%+v\nbecame\n%+v", h.Operations, again.Operations)
		}
	})
}

func rewrite(t *testing.T, h *History) []byte {
	t.Helper()
	var b bytes.Buffer
	r := NewRecorder(&b, h.Run, func() Time { return h.End.At })
	recordAll(h, r)
	if err := r.Close(nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
