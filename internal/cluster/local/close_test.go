package local

import "testing"

// closing counts how often it was closed.
type closing int

func (c *closing) Close() error { *c++; return nil }

// A program that makes one cluster after another must not run out of files.
func TestCloseClosesTheLogOfTheLinks(t *testing.T) {
	var log closing
	(&Cluster{log: &log}).Close()
	if log != 1 {
		t.Errorf("it was closed %d times, want once", log)
	}
}
