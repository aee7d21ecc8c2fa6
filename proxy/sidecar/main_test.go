package sidecar

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets eight parallel tests run at a time, however few processors there are. Most of their
// time they wait, above all one second for each shutdown of HTTP/2.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
