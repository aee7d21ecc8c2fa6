package history

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// A history that Write writes reads back like a history that a recorder wrote during the run. Its
// bytes are always the same, although the order of a map differs.
func TestWriteIsTheInverseOfRead(t *testing.T) {
	want := sample()
	want.Documents["sha256:0"] = Document{Hash: "sha256:0", Resources: []Resource{}}
	var first bytes.Buffer
	if err := Write(&first, want); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var again bytes.Buffer
		if err := Write(&again, want); err != nil || !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Fatalf("written again, it differs; error %v", err)
		}
	}
	got, err := Read(&first)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwritten\n%+v", got, want)
	}
}

func TestAHistoryWithoutAnEndIsWrittenWithout(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, &History{}); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(&b); err != nil || got.End.Complete || got.Run.Schema != SchemaVersion {
		t.Errorf("read %+v, error %v", got, err)
	}
}

func TestWriteSaysThatTheDiskIsFull(t *testing.T) {
	if err := Write(&full{}, sample()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// With --keep, the cluster continues after the end of its run. Its later events must not change the
// history.
func TestWhatComesAfterTheEndIsNotRecorded(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, Run{}, nil)
	if err := r.Close(nil); err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // more than any buffer holds
		r.Lifecycle(Lifecycle{Server: "a", State: StateCrashed})
	}
	if h, err := Read(&b); err != nil || !h.End.Complete || len(h.Lifecycle) != 0 {
		t.Errorf("read %+v, error %v", h, err)
	}
}
