package conformance

import (
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/skewproof/skewproof/reports"
)

// Run runs the suite in this process, which can do so once, and returns its report. Ginkgo prints what happens, and writes a JUnit file into
// the output directory.
func Run(o Options, color bool) (reports.ConformanceReport, error) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.LabelFilter = o.Labels
	suite.GracePeriod = grace
	reporter.NoColor = !color
	reporter.SilenceSkips = true // those that the labels leave out; the others are in the report
	reporter.JUnitReport = filepath.Join(o.Out, reports.JUnitFile)
	Declare(o)
	ginkgo.RunSpecs(verdict{}, "skewproof conformance", suite, reporter)
	return reports.ReadConformance(filepath.Join(o.Out, reports.ConformanceFile))
}

// verdict takes Ginkgo's word that the suite has failed, and drops it: the report says more.
type verdict struct{}

func (verdict) Fail() {}
