package conformance

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/reports"
)

// Run runs the suite in this process, which can do so once, and returns its report, which is also saved in the output directory. Ginkgo prints what
// happens. With an error there may still be a report: the one that could not be saved.
//
// Specs are run in the order of the catalogue. Up to [Options.Parallel] of their runs are under way at a time; they are begun in that order too.
//
// When ctx ends, the suite ends as [Declare] says. Ginkgo answers SIGINT and SIGTERM with the stacks of all goroutines, in which what matters
// drowns. So takeSignals is called once Ginkgo listens to them; it is to see to it that they end ctx and nothing else. Nil leaves them to Ginkgo.
func Run(ctx context.Context, o Options, color bool, takeSignals func()) (reports.ConformanceReport, error) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := configuration(o, color)
	if takeSignals != nil {
		ginkgo.ReportBeforeSuite(func(ginkgo.Report) { takeSignals() })
	}
	end := declare(ctx, o, ginkgo.Ordered, ginkgo.ContinueOnFailure)
	ginkgo.RunSpecs(verdict{}, "skewproof conformance", suite, reporter)
	if end.Err == nil && end.Report.Kind == "" {
		end.Err = fmt.Errorf("the suite ended without a report; what it said is above")
	}
	return end.Report, end.Err
}

// configuration is how Ginkgo is to run the suite.
func configuration(o Options, color bool) (types.SuiteConfig, types.ReporterConfig) {
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.LabelFilter = o.Labels
	limit(&suite)
	reporter.NoColor = !color
	reporter.SilenceSkips = true // those that the labels leave out; the others are in the report
	return suite, reporter
}

// limit leaves limits to the specs, each of which has one by what it has to wait for. That of Ginkgo for the whole is an hour unless told otherwise: too
// short for the catalogue, and a longer one would be wrong for the next scenario that is added.
func limit(suite *types.SuiteConfig) {
	suite.Timeout = 0
	suite.GracePeriod = grace
}

// verdict takes Ginkgo's word that the suite has failed, and drops it: the report says more.
type verdict struct{}

func (verdict) Fail() {}
