package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// report makes the document of the campaign.
func (c *Campaign) report(complete bool) *reports.Campaign {
	last := len(c.Versions) - 1
	doc := &reports.Campaign{
		APIVersion: reports.APIVersion, Kind: reports.CampaignKind, SkewproofVersion: c.Version, Method: reports.MethodReal,
		Spec:      reports.SearchSpec{Policy: c.Spec.Subject, From: c.Versions[0], To: c.Versions[last], Servers: c.Spec.Servers},
		FirstSeed: max(c.First, 1), Wanted: c.Seeds, Of: 1, Strict: c.Judging.Strict, Complete: complete,
		Shards: []reports.Shard{{Index: 1, Schedules: c.done, ElapsedSeconds: c.explored.Round(time.Millisecond).Seconds(), Workers: 1, Machine: c.Machine}},
	}
	if len(c.Versions) > 2 {
		doc.Spec.Versions = c.Versions
	}
	c.tally.Fill(doc)
	doc.Growth = c.growth
	doc.Real = &reports.RealCampaign{
		Subject: c.Spec.Subject, Versions: c.Versions, QPS: c.Spec.QPS, Sessions: c.sessions, Operations: c.operations, PassedOn: c.passedOn,
		Overloaded: c.overloaded, Coverage: c.reached.Report(), Axes: axes(),
		ScheduleSeconds: mean(c.took, c.done), ResetSeconds: mean(c.resets, c.done), AloneSeconds: mean(sum(c.alone), uint64(len(c.alone))),
	}
	for n, f := range c.fresh {
		i := slices.IndexFunc(doc.Findings, func(o reports.CampaignFinding) bool { return o.ViolationKind == f.ViolationKind })
		if i < 0 {
			continue // there are more kinds than the report distinguishes
		}
		c.tryModel(f)
		f.real.Run, f.real.After = f.run, f.after
		if f.real.Model == "the model does not know it" {
			doc.Real.Gaps = append(doc.Real.Gaps, f.ViolationKind.String())
		}
		doc.Findings[i].Seed, doc.Findings[i].Sentence, doc.Findings[i].Shrunk, doc.Findings[i].Real = f.schedule.seed, f.Sentence, f.shrunk, &f.real
		c.addRepro(&doc.Findings[i], f, n+1, doc.Spec)
	}
	doc.Conclude()
	return doc
}

// addRepro adds the repro file of a finding.
func (c *Campaign) addRepro(to *reports.CampaignFinding, f *newFinding, n int, doc reports.SearchSpec) {
	shown := c.caseOf(f.schedule)
	to.Story, to.Disturbances = search.StoryOf(&shown)
	policy := c.Spec.Subject
	if policy == scenario.SubjectBuiltin {
		p, _, err := policyOf(c.Spec.Subject, f.schedule.to)
		if err != nil {
			return // the simulator has no such proxy, and could not read the file
		}
		policy = p.Name
	}
	repro := &search.Repro{
		Schema: search.ReproSchema, Commit: c.Version, Spec: search.Spec{Policy: policy, From: f.schedule.from, To: f.schedule.to, Servers: len(shown.Servers), Versions: doc.Versions},
		Seed: f.schedule.seed, Invariant: f.Signature.Invariant, Cause: f.Cause, Sentence: f.Sentence, Signature: f.Signature, Case: shown, Hash: search.HashText(0),
		Found: &search.Found{
			Subject: c.Spec.Subject, Versions: c.Versions, QPS: c.Spec.QPS, Run: f.real.Run, Confirmed: f.real.Confirmed, Repeated: f.real.Repeated,
			After: f.real.After, Model: f.real.Model,
		},
	}
	if result, _, err := repro.Replay(false); err == nil {
		repro.Hash = search.HashText(result.Hash)
	}
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(repro); err != nil {
		return
	}
	to.Repro, to.File = bytes.TrimSpace(encoded.Bytes()), fmt.Sprintf("%s-%d.json", f.Signature.Invariant, n)
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// mean is in seconds; 0 of none.
func mean(total time.Duration, n uint64) float64 {
	if n == 0 {
		return 0
	}
	return (total / time.Duration(n)).Round(time.Millisecond).Seconds()
}
