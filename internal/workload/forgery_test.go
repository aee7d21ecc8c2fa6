package workload

import (
	"slices"
	"strings"
	"testing"
)

// The load goes to released servers too. So a client that pretends to be a peer sends what a peer
// sends, and nothing that a server could read in two ways.
func TestForgeriesArePlain(t *testing.T) {
	for _, f := range Forgeries {
		for name, values := range f.Header {
			switch name = strings.ToLower(name); {
			case name == "connection" || name == "trailer":
				t.Errorf("%s: it lists headers", f.Name)
			case strings.HasPrefix(name, "x-kubernetes-") && !slices.Equal(values, []string{"true"}):
				t.Errorf("%s: %s is %q, want the one value that a peer sends", f.Name, name, values)
			}
		}
	}
}
