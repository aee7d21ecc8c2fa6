package conformance

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Report makes the conformance report of a suite that is over, from what its specs left. unproven are the scenarios without a control run, to which those come whose
// control run was refused.
func (o *Options) Report(r types.Report, unproven []reports.Unproven) reports.ConformanceReport {
	c := reports.ConformanceReport{
		Metadata: reports.ConformanceMetadata{
			StartedAt: r.StartTime.UTC(), DurationSeconds: reports.SecondsOf(r.EndTime.Sub(r.StartTime)), SkewproofVersion: o.Version,
			Labels: o.Labels, Strict: o.Strict, Complete: true,
		},
		Product: o.product(), Reproduce: o.Reproduce, Environment: o.Environment,
		Scenarios: []reports.ConformanceScenario{}, Control: reports.ConformanceControl{Runs: []reports.ControlRun{}},
	}
	left := map[string]outcome{}
	for _, spec := range r.SpecReports {
		if found, ok := leftBy(spec); ok {
			left[spec.FullText()] = found
			c.Metadata.Complete = c.Metadata.Complete && !found.Interrupted
		}
	}
	for _, s := range o.chosen() {
		found := left[strings.Join([]string{container, string(s.Family), s.Name}, " ")]
		if found.Scenario == nil {
			found.Scenario = o.ofScenario(s)
			unsaid(found.Scenario, reports.ResultSkipped, reports.NotReached)
			c.Metadata.Complete = false
		}
		c.Scenarios = append(c.Scenarios, *found.Scenario)
	}
	c.Control.Unproven = slices.Clone(unproven)
	runs, _ := o.controls()
	for _, run := range runs {
		found := left[strings.Join([]string{container, controlContainer, run.Name, "on", run.Control.Subject}, " ")]
		if found.Control == nil {
			found.Control = run.result()
			found.Control.Result, found.Control.Reason = reports.ResultInconclusive, reports.NotReached
			c.Metadata.Complete = false
		}
		if found.Control.Result == reports.ResultSkipped {
			c.Control.Unproven = append(c.Control.Unproven, reports.Unproven{Scenario: run.Name, Reason: found.Control.Reason})
			continue
		}
		c.Control.Runs = append(c.Control.Runs, *found.Control)
	}
	if slices.ContainsFunc(r.SpecReports, func(s types.SpecReport) bool { return s.State.Is(types.SpecStateInterrupted | types.SpecStateAborted) }) {
		c.Metadata.Complete = false
	}
	c.Conclude()
	return c
}

// leftBy reads what a spec left.
func leftBy(spec types.SpecReport) (outcome, bool) {
	for _, e := range spec.ReportEntries {
		if e.Name != entry {
			continue
		}
		text, ok := e.Value.GetRawValue().(string)
		if !ok {
			return outcome{}, false
		}
		var found outcome
		return found, json.Unmarshal([]byte(text), &found) == nil
	}
	return outcome{}, false
}

// product is what the report says was tested.
func (o *Options) product() reports.Product {
	p := o.Product
	p.Backend, p.Subject = o.Backend, o.Tested()
	if o.Backend != scenario.BackendExisting {
		parameters := o.parameters(scenario.Scenario{})
		p.From, p.To = parameters.From, parameters.To
	}
	if p.Name == "" {
		p.Name = names[p.Subject]
	}
	return p
}

// names are what products are called, by subject.
var names = map[string]string{
	"builtin":   "kube-apiserver's own Mixed Version Proxy",
	"reference": "skewproof's reference proxy",
	"alpha":     "Mixed Version Proxy as designed for 1.28",
	"none":      "no proxy",
	External:    "not told: give --product",
}
