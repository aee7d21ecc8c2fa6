package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

func names(list []Binary) []string {
	var n []string
	for _, b := range list {
		n = append(n, string(b.Component)+"@"+b.Version)
	}
	return n
}

func TestList(t *testing.T) {
	s := newStore(t, "")
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Fatalf("empty: got %v, %v", list, err)
	}
	s.Dir = filepath.Join(s.Dir, "a [strange] *directory?")
	fill(t, s, KubeAPIServer, "v1.100.0")
	fill(t, s, KubeAPIServer, "v1.37.1")
	fill(t, s, Etcd, DefaultEtcd)
	damaged := fill(t, s, KubeAPIServer, "v1.36.3")
	if err := os.Truncate(damaged.Path, 1); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if got, want := names(list), []string{"etcd@" + DefaultEtcd, "kube-apiserver@v1.37.1", "kube-apiserver@v1.100.0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err == nil || !strings.Contains(err.Error(), "v1.36.3") {
		t.Errorf("the damaged entry: got %v", err)
	}
}

func TestPrune(t *testing.T) {
	s := newStore(t, "")
	fill(t, s, KubeAPIServer, "v1.37.1")
	fill(t, s, KubeAPIServer, "v1.34.4")
	fill(t, s, Etcd, DefaultEtcd)
	damaged := fill(t, s, Etcd, "v3.5.0")
	if err := os.Remove(filepath.Join(filepath.Dir(damaged.Path), originFile)); err != nil {
		t.Fatal(err)
	}
	leftover, err := newWorkspace(s.Dir, Ref{KubeAPIServer, "v1.30.14"})
	if err != nil {
		t.Fatal(err)
	}

	removed, err := s.Prune(Ref{KubeAPIServer, "v1.37.1"}, Ref{Etcd, DefaultEtcd})
	if got, want := names(removed), []string{"kube-apiserver@v1.34.4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	list, err := s.List()
	if got, want := names(list), []string{"etcd@" + DefaultEtcd, "kube-apiserver@v1.37.1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("left are %v, %v; want %v", got, err, want)
	}
	for _, gone := range []string{leftover.root, filepath.Dir(filepath.Dir(damaged.Path)), filepath.Join(s.Dir, "kube-apiserver", "v1.34.4")} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if removed, err := s.Prune(); err != nil || len(removed) != 2 {
		t.Errorf("all: got %v, %v", names(removed), err)
	}
	checkNothingLeft(t, filepath.Join(s.Dir, string(Etcd)))
}

func TestPruneLeavesWhatIsBeingFetched(t *testing.T) {
	s := newStore(t, "")
	b := fill(t, s, KubeAPIServer, testVersion)
	ref := Ref{KubeAPIServer, testVersion}
	unlock, err := s.lock(t.Context(), s.Dir, ref.Name(), s.progress(ref))
	if err != nil {
		t.Fatal(err)
	}
	removed, err := s.Prune()
	if len(removed) != 0 || err == nil || !strings.Contains(err.Error(), "kube-apiserver v1.36.3 is not removed: process") {
		t.Errorf("got %v, %v", names(removed), err)
	}
	if _, err := os.Stat(b.Path); err != nil {
		t.Error(err)
	}
	unlock()
	if free, err := flock.New(filepath.Join(s.Dir, locksDir, ref.Name()+".lock")).TryLock(); !free || err != nil {
		t.Errorf("the lock is not free: %v, %v", free, err)
	}
}
