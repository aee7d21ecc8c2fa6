package conformance

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
)

// The whole catalogue takes longer than the hour after which Ginkgo would end a suite, and report what is left as not run.
func TestTheWholeHasNoLimitOfItsOwn(t *testing.T) {
	suite, _ := ginkgo.GinkgoConfiguration()
	if suite.Timeout == 0 {
		t.Fatal("Ginkgo has no limit for the whole any more: nothing has to be done about it")
	}
	limit(&suite)
	if suite.Timeout != 0 || suite.GracePeriod != grace {
		t.Errorf("a suite may take %s, and a spec that is to end %s; want no limit and %s", suite.Timeout, suite.GracePeriod, grace)
	}
}
