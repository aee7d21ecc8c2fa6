package e2e

import (
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/gates"
)

// A running server has the feature gates that are recorded of its version.
func TestRecordedGatesAreThoseOfARunningServer(t *testing.T) {
	if isInside() {
		compareGates(t)
		return
	}
	held := begin(t, "The cluster stays up", "--keep", "--no-load", "--at", "0", "--subject", "none", "--servers", "2")
	held.again(t, 2*time.Minute)
	held.end(t, syscall.SIGINT)
}

var featureEnabled = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])$`)

func compareGates(t *testing.T) {
	admin, err := kubernetes.NewForConfig(insideConfig(t, anyServer))
	must(t, err)
	metrics, err := admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	version, err := admin.Discovery().ServerVersion()
	must(t, err)
	recording, err := gates.Find(version.GitVersion)
	must(t, err)
	decision, err := gates.Decide(version.GitVersion, nil)
	must(t, err)
	if recording.Version != version.GitVersion {
		t.Fatalf("%s is not recorded", version.GitVersion)
	}
	running := featureEnabled.FindAllStringSubmatch(string(metrics), -1)
	if len(running) != len(recording.Gates) {
		t.Errorf("the server has %d feature gates, and %d are recorded", len(running), len(recording.Gates))
	}
	for _, found := range running {
		name, on := found[1], found[2] == "1"
		if !slices.ContainsFunc(recording.Gates, func(g gates.Gate) bool { return g.Name == name }) {
			t.Errorf("%s is not recorded", name)
		}
		if name != gates.Proxy && decision.Gate(name) != on { // the run switches the proxy off
			t.Errorf("%s is on: %t, and by the recording %t", name, on, decision.Gate(name))
		}
	}
}

// A flag that is not recorded would be called unknown.
func TestRecordedFlagsAreThoseOfTheProgram(t *testing.T) {
	for _, version := range []string{"v1.36.3", "v1.37.1"} {
		program, err := (&binaries.Store{}).Get(t.Context(), binaries.KubeAPIServer, version)
		must(t, err)
		has, err := binaries.Flags(t.Context(), program.Path)
		must(t, err)
		decision, err := gates.Decide(version, nil)
		must(t, err)
		for _, name := range has {
			if !slices.Contains(decision.Flags(), name) {
				t.Errorf("kube-apiserver %s has the flag --%s, which is not recorded", version, name)
			}
		}
		if len(has) < 100 {
			t.Errorf("the help of kube-apiserver %s has %d flags", version, len(has))
		}
	}
}
