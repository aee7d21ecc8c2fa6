package main

import (
	"strings"
	"testing"
)

// A policy that cannot be read ends the server, before it looks at its other flags.
func TestThePolicy(t *testing.T) {
	cmd := command() // there can be only one, because it takes the process's signals
	for _, c := range []struct{ policy, want string }{
		{"refrence", `--mixed-version-proxy-policy: no policy "refrence" (did you mean "reference"?)`},
		{"reference,Routing.Atempts=1", `--mixed-version-proxy-policy: change "Routing.Atempts=1": no switch "Routing.Atempts" (did you mean "Routing.Attempts"?)`},
		{"reference,Routing.Attempts=1", "--etcd-servers must be specified"}, // which is another flag
	} {
		cmd.SetArgs([]string{"--mixed-version-proxy-policy=" + c.policy, "--cert-dir=" + t.TempDir()})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--mixed-version-proxy-policy=%s: %v, want %q", c.policy, err, c.want)
		}
	}
}
