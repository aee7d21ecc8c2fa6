package purity

import "testing"

func TestImpuritiesAreFound(t *testing.T) {
	found, err := CheckSource(`package proxy
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

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	if _, err := Check("no-such-file.go"); err == nil {
		t.Error("a file that does not exist is pure")
	}
	if _, err := CheckSource("package"); err == nil {
		t.Error("half a file is pure")
	}
}
