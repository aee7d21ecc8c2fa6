package local

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Ginkgo joins all --ginkgo.focus with "|", and matches the suite's name, a space and a spec's name.
func TestOnlyTheChosenSpecsMatchTheFocusOfTests(t *testing.T) {
	chosen := []string{"[sig-node] ConfigMap should work (a|b) [Conformance]", "[sig-apps] Job should be. deleted"}
	var focus []string
	for _, arg := range TestsArguments(Files{Keys: "K", Logs: "L"}, scenario.Tests{Specs: chosen}) {
		if f, ok := strings.CutPrefix(arg, "--ginkgo.focus="); ok {
			focus = append(focus, f)
		}
	}
	re := regexp.MustCompile(strings.Join(focus, "|"))
	for _, name := range chosen {
		if !re.MatchString("Kubernetes e2e suite " + name) {
			t.Errorf("%q is chosen, and not in focus", name)
		}
	}
	for _, name := range []string{
		chosen[0] + " twice", "more " + chosen[0], "[sig-node] ConfigMap should work a [Conformance]", "[sig-apps] Job should bee deleted",
	} {
		if re.MatchString("Kubernetes e2e suite " + name) {
			t.Errorf("%q is not chosen, and in focus", name)
		}
	}
}

func TestTheArgumentsOfTests(t *testing.T) {
	args := TestsArguments(Files{Keys: "K", Logs: "L"}, scenario.Tests{Specs: []string{"x"}})
	for _, want := range []string{"--kubeconfig=K/tests.kubeconfig", "--report-dir=L/e2e", "--num-nodes=0", "--allowed-not-ready-nodes=-1", "--ginkgo.seed=1"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
	if got := (Files{Logs: "L"}).TestResults(); got != "L/e2e/junit_01.xml" {
		t.Errorf("the results are looked for in %s", got)
	}
}

// The host of the tests has addresses of its own.
func TestTheHostOfTestsIsNoOther(t *testing.T) {
	servers := make([]history.Server, MaxServers)
	for i := range servers {
		servers[i].Name = scenario.ServerName(i)
	}
	for _, p := range Places(scenario.SubjectNone, servers) {
		if p.Subnet.Overlaps(testsHost) || testsHost.Contains(p.Advertised.Addr()) {
			t.Errorf("server %s at %s, %s shares %s with the tests", p.Name, p.Subnet, p.Advertised, testsHost)
		}
	}
	if controllersHost.Overlaps(testsHost) {
		t.Errorf("the controllers share %s with the tests", testsHost)
	}
}
