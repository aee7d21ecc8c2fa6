package purity

import (
	"os"
	"path/filepath"
	"testing"
)

// check checks one file with this content.
func check(t *testing.T, source string) ([]string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "source.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return Check(file)
}

func TestImpuritiesAreFound(t *testing.T) {
	found, err := check(t, `package proxy
import ("math/rand"; "time")
func f(m map[string]int, c chan int) {
	go f(nil, nil)
	select {}
	for range m {}
	for range m {} // in any order: it only counts
	c <- 1
	_ = time.Now()
	_ = rand.Int()
}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 6 {
		t.Errorf("found %q, want six: an import, a goroutine, a select, a map's order, a channel, the clock", found)
	}
}

func TestUnreadableFilesAreErrors(t *testing.T) {
	if _, err := Check("no-such-file.go"); err == nil {
		t.Error("no error for a file that does not exist")
	}
	if _, err := check(t, "package"); err == nil {
		t.Error("no error for half a file")
	}
}
