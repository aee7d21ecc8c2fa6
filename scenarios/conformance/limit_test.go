package conformance

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
)

// The whole catalogue takes longer than the hour after which Ginkgo would end a suite, and report what is left as not run.
func TestTheWholeHasNoLimitOfItsOwn(t *testing.T) {
	if usual, _ := ginkgo.GinkgoConfiguration(); usual.Timeout == 0 {
		t.Fatal("Ginkgo has no limit for the whole any more: nothing has to be done about it")
	}
	suite, _ := configuration(Options{Labels: "smoke"}, false)
	if suite.Timeout != 0 || suite.GracePeriod != grace || suite.LabelFilter != "smoke" {
		t.Errorf("a suite of %q may take %s, and a spec that is to end %s; want no limit and %s", suite.LabelFilter, suite.Timeout, suite.GracePeriod, grace)
	}
}
