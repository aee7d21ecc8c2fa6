package main

import (
	"testing"

	"github.com/skewproof/skewproof/internal/cluster/local"
)

// The local backend starts the program with this command line. Otherwise only a run with an
// aggregated API would test it.
func TestTheExtensionTakesTheFlagsThatItIsStartedWith(t *testing.T) {
	cmd, rest, err := newRoot().Find(local.ExtensionArguments(local.Files{Keys: "keys"}))
	if err != nil || cmd.Name() != "extension" {
		t.Fatalf("found %v, %v", cmd, err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"address", "tls-cert-file", "tls-private-key-file", "requestheader-client-ca-file", "requestheader-allowed-name", "apis"} {
		if cmd.Flags().Lookup(name).Value.String() == "" {
			t.Errorf("--%s is not given", name)
		}
	}
}
