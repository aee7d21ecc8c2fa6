package campaign

import (
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// report makes the document of the campaign, its earlier parts included.
func (c *Campaign) report(complete bool) *reports.Campaign {
	last := len(c.Versions) - 1
	var parts []reports.Part
	if c.Earlier != nil {
		parts = slices.Clone(c.Earlier.Parts)
	}
	parts = append(parts, reports.Part{
		Schedules: c.done - c.earlier, ElapsedSeconds: c.explored.Round(time.Millisecond).Seconds(), Workers: 1,
		Machine: c.Machine,
	})
	doc := &reports.Campaign{
		TypeMeta: reports.OfKind(reports.CampaignKind), SkewproofVersion: c.Version, Method: reports.MethodReal,
		Spec:      reports.SearchSpec{Policy: c.Spec.Subject, From: c.Versions[0], To: c.Versions[last], Servers: c.Spec.Servers},
		FirstSeed: max(c.First, 1), Parts: parts, Strict: c.Judging.Strict, Complete: complete,
	}
	if c.Seeds > 0 {
		doc.Wanted = c.earlier + c.Seeds
	}
	if len(c.Versions) > 2 {
		doc.Spec.Versions = c.Versions
	}
	c.tally.Fill(doc)
	doc.Growth, doc.Reached = c.growth, nil // real servers do not show the states of the simulator
	real := c.real
	real.Subject, real.Versions, real.Controllers, real.QPS, real.Environment = c.Spec.Subject, c.Versions, c.Controllers, c.Spec.QPS, c.Environment
	real.Coverage, real.Axes, real.NextSeed, real.Gaps = c.reached.Report(), axes(), c.chooser.next, slices.Clone(c.real.Gaps)
	real.ScheduleSeconds, real.ResetSeconds, real.AloneSeconds = mean(c.took, c.done), mean(c.resets, c.done), mean(c.alone, c.real.AloneRuns)
	doc.Real = &real
	for _, f := range c.fresh {
		i := slices.IndexFunc(doc.Findings, func(o reports.CampaignFinding) bool { return o.ViolationKind == f.ViolationKind })
		if i < 0 {
			continue // there are more kinds than the report distinguishes
		}
		if f.real.Model == "" { // the answer is always the same
			f.real.Model = c.model(f)
		}
		if f.real.Model == notInModel && !slices.Contains(doc.Real.Gaps, f.ViolationKind.String()) {
			doc.Real.Gaps = append(doc.Real.Gaps, f.ViolationKind.String())
		}
		doc.Findings[i].Seed, doc.Findings[i].Sentence, doc.Findings[i].Shrunk, doc.Findings[i].Real = f.schedule.seed, f.Sentence, f.shrunk,
			&f.real
		c.addRepro(&doc.Findings[i], f, doc)
	}
	doc.Conclude()
	return doc
}

// addRepro adds the repro file of a finding to the document.
func (c *Campaign) addRepro(to *reports.CampaignFinding, f *newFinding, doc *reports.Campaign) {
	shown := sim.CaseOf(f.schedule.plan, c.Spec.QPS)
	to.Story, to.Disturbances = search.Story(&shown)
	policy := c.Spec.Subject
	if policy == scenario.SubjectBuiltin {
		p, err := sim.PresetOf(c.chooser.to)
		if err != nil {
			return // the simulator has no such proxy, and could not read the file
		}
		policy = p.Name
	}
	repro := &search.Repro{
		Schema: search.ReproSchema, Commit: c.Version,
		Spec: search.Spec{Policy: policy, From: c.chooser.from, To: c.chooser.to, Servers: len(shown.Servers), Versions: doc.Spec.Versions},
		Seed: f.schedule.seed, Invariant: f.Signature.Invariant, Cause: f.Cause, Sentence: f.Sentence, Signature: f.Signature, Case: shown,
		Hash:  search.HashText(0),
		Found: &search.Found{Subject: c.Spec.Subject, Versions: c.Versions, QPS: c.Spec.QPS, RealFinding: f.real},
	}
	if result, err := repro.Run(false); err == nil {
		repro.Hash = search.HashText(result.Hash)
	}
	if encoded, err := repro.Encode(); err == nil {
		to.Repro, to.File = encoded, c.fileOf(f, doc)
	}
}

// fileOf returns the name of the repro file of a finding, which no other finding has.
func (c *Campaign) fileOf(f *newFinding, doc *reports.Campaign) string {
	for n := 1; f.file == ""; n++ {
		name := fmt.Sprintf("%s-%d.json", f.Signature.Invariant, n)
		if !slices.ContainsFunc(doc.Findings, func(o reports.CampaignFinding) bool { return o.File == name }) &&
			!slices.ContainsFunc(c.fresh, func(o *newFinding) bool { return o.file == name }) {
			f.file = name
		}
	}
	return f.file
}

// mean is in seconds; 0 of none.
func mean(total time.Duration, n uint64) float64 {
	if n == 0 {
		return 0
	}
	return (total / time.Duration(n)).Round(time.Millisecond).Seconds()
}
