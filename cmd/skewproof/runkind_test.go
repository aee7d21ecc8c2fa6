package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
)

// If only some backends can do something, the others refuse it before anything starts, and say what
// to do instead.
func TestWhatAKindClusterCannotDoIsWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"etcd of another version": {[]string{"quiet", "--etcd", "v3.6.8"}, "--etcd means nothing"},
		"too many servers":        {[]string{"quiet", "--servers", "8"}, "2 to 7"},
		"a flag that it has not":  {[]string{"quiet", "--dry-run", "--kube-apiserver-flag", "insecure-port=0"}, "unknown flag: --insecure-port"},
		"a gate that it has not":  {[]string{"quiet", "--dry-run", "--kube-apiserver-flag", "feature-gates=SidecarContainers=true"}, "unrecognized feature gate"},
		"a setup of its own":      {[]string{"expired-serving-certificate"}, "runs on local, sim only, because the kubelet"},
	} {
		_, err := call(t, append([]string{"run", "--backend", "kind"}, c.args...)...)
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage that says %q", name, err, c.want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("something was left: %v (%v)", left, err)
	}
}

// The conformance suite and the page of the catalogue use the limits. A scenario without a limit
// must not be refused for any subject.
func TestEveryScenarioForKindIsAcceptedThere(t *testing.T) {
	for _, s := range scenarios.All() {
		for _, subject := range scenario.Subjects {
			args := []string{"run", s.Name, "--backend", "kind", "--dry-run", "--subject", subject, "--servers", fmt.Sprint(max(3, s.MinServers))}
			_, err := call(t, args...)
			if allowed := s.Limits.Allows(scenario.BackendKind) && s.Limits.AllowsSubject(subject); allowed != (err == nil) {
				t.Errorf("%s on %s: allowed %v, error %v", s.Name, subject, allowed, err)
			}
		}
	}
}

func TestDryRunOnKindShowsTheCluster(t *testing.T) {
	out, err := call(t, "run", "rolling-upgrade", "--backend", "kind", "--dry-run", "--subject", "reference")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replace c by v1.37.1", "kind: Cluster", "image: skewproof/node:v1.36.3_v1.37.1", "value: \"reference\""} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not show %q", want)
		}
	}
}
