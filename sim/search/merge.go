package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
)

// maxCampaign bounds a file that is read, in MiB: sketches are tens of kilobytes, and a repro a few.
const maxCampaign = 64

// MaxShards bounds how many parts a campaign is searched in: more than there are machines to search them.
const MaxShards = 10_000

// ReadCampaign reads a campaign that was saved. It refuses what is none, and one that contradicts itself.
func ReadCampaign(path string) (*Campaign, error) {
	return readFile("campaign", path, DecodeCampaign)
}

// DecodeCampaign is [ReadCampaign] from a stream.
func DecodeCampaign(from io.Reader) (*Campaign, error) {
	body, err := readBounded(from, maxCampaign)
	if err != nil {
		return nil, err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("it is not a JSON document: %w", err)
	}
	if head.APIVersion != CampaignVersion || head.Kind != CampaignKind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: this skewproof reads %q, %q only", head.APIVersion, head.Kind, CampaignVersion, CampaignKind)
	}
	c := &Campaign{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("it is not a campaign that this skewproof knows: %w", err)
	}
	return c, c.check()
}

// check refuses what contradicts itself.
func (c *Campaign) check() error {
	if len(c.Shards) == 0 || c.Of < len(c.Shards) || c.Of > MaxShards {
		return fmt.Errorf("it has %d shards of %d: want at least one, of at most %d", len(c.Shards), c.Of, MaxShards)
	}
	sum := uint64(0)
	for i, s := range c.Shards {
		if s.Index < 1 || s.Index > c.Of || i > 0 && c.Shards[i-1].Index >= s.Index {
			return fmt.Errorf("its shard %d of %d is out of place", s.Index, c.Of)
		}
		sum += s.Schedules
	}
	if sum != c.Schedules {
		return fmt.Errorf("its shards have %d schedules, and it says %d: the file was altered", sum, c.Schedules)
	}
	if len(c.Reached) != len(sim.States()) {
		return fmt.Errorf("it knows %d interesting states; this skewproof knows %d", len(c.Reached), len(sim.States()))
	}
	for i, s := range sim.States() {
		if c.Reached[i].State != s.String() {
			return fmt.Errorf("its state %d is %q; this skewproof's is %q", i+1, c.Reached[i].State, s)
		}
	}
	known := invariant.All()
	if len(c.Invariants) != len(known) {
		return fmt.Errorf("it knows %d invariants; this skewproof knows %d", len(c.Invariants), len(known))
	}
	for i, inv := range known {
		if c.Invariants[i].Name != inv.Name {
			return fmt.Errorf("its invariant %d is %q; this skewproof's is %q", i+1, c.Invariants[i].Name, inv.Name)
		}
		if len(c.Invariants[i].Requests) != len(peculiarities) {
			return fmt.Errorf("it knows %d kinds of requests; this skewproof knows %d", len(c.Invariants[i].Requests), len(peculiarities))
		}
	}
	for _, f := range c.Findings {
		// A merged campaign names its files by this.
		if !slices.ContainsFunc(known, func(inv invariant.Invariant) bool { return inv.Name == f.Invariant }) {
			return fmt.Errorf("a finding is of the invariant %q, which this skewproof does not know", f.Invariant)
		}
		if strings.ContainsAny(f.File, `/\`) || f.File == ".." {
			return fmt.Errorf("a finding's file %q is no plain name", f.File)
		}
	}
	if outcome, _ := c.outcome(); outcome != c.Verdict.Outcome {
		return fmt.Errorf("its verdict is %q, and what it found makes %q: the file was altered", c.Verdict.Outcome, outcome)
	}
	return nil
}

// MergeCampaigns puts the shards of one campaign together. It refuses those of different campaigns, one shard twice, and a missing one: what is
// put together must be what one process would have found.
func MergeCampaigns(parts []*Campaign) (*Campaign, error) {
	if len(parts) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	c := *parts[0]
	there := map[int]bool{}
	for _, p := range parts {
		if err := c.sameAs(p); err != nil {
			return nil, err
		}
		for _, s := range p.Shards {
			if there[s.Index] {
				return nil, fmt.Errorf("shard %d of %d is given twice: each must be given once", s.Index, c.Of)
			}
			there[s.Index] = true
		}
	}
	if missing := c.Of - len(there); missing > 0 {
		return nil, fmt.Errorf("shards %s are missing: give the campaign file of each, or run it with --shard", c.absent(there, missing))
	}
	c.merge(parts)
	return &c, nil
}

// absent names the first few of the shards that are missing, and says how many more are.
func (c *Campaign) absent(there map[int]bool, missing int) string {
	const most = 8
	var names []string
	for i := 1; len(names) < min(missing, most); i++ {
		if !there[i] {
			names = append(names, fmt.Sprintf("%d/%d", i, c.Of))
		}
	}
	if missing > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), missing-most)
	}
	return strings.Join(names, ", ")
}

// sameAs reports in what another campaign is not of the same search.
func (c *Campaign) sameAs(o *Campaign) error {
	mine, _ := json.Marshal(c.Spec)
	others, _ := json.Marshal(o.Spec)
	for _, d := range []struct {
		what         string
		mine, others any
	}{
		{"versions of skewproof", c.SkewproofVersion, o.SkewproofVersion},
		{"specs", string(mine), string(others)},
		{"methods", c.Method, o.Method},
		{"scopes", c.events(), o.events()},
		{"first seeds", c.FirstSeed, o.FirstSeed},
		{"numbers of schedules", c.Wanted, o.Wanted},
		{"numbers of shards", c.Of, o.Of},
		{"settings of --strict", c.Strict, o.Strict},
	} {
		if d.mine != d.others {
			return fmt.Errorf("the campaigns have different %s, %v and %v: only shards of one campaign can be merged", d.what, d.mine, d.others)
		}
	}
	return nil
}

func (c *Campaign) events() int {
	if c.Scope == nil {
		return 0
	}
	return c.Scope.Events
}

// merge sums up what the parts say.
func (c *Campaign) merge(parts []*Campaign) {
	c.Shards, c.Complete, c.PassedOn, c.Judged, c.Checks = nil, true, 0, 0, Checks{}
	c.TracesSketch, c.ShapesSketch = Distinct{}, Distinct{}
	none := newTally()
	reached, invariants := make([]Reach, len(c.Reached)), none.invariants()
	t := newTally()
	smallest := map[Signature]*Finding{}
	for _, p := range parts {
		c.Shards = append(c.Shards, p.Shards...)
		c.Complete = c.Complete && p.Complete
		c.PassedOn, c.Judged = c.PassedOn+p.PassedOn, c.Judged+p.Judged
		c.Checks.add(p.Checks)
		c.TracesSketch.Merge(&p.TracesSketch)
		c.ShapesSketch.Merge(&p.ShapesSketch)
		for i, r := range p.Reached {
			reached[i] = Reach{State: r.State, Schedules: reached[i].Schedules + r.Schedules, Impossible: r.Impossible}
		}
		for i, inv := range p.Invariants {
			invariants[i].Exercised += inv.Exercised
			invariants[i].Violated += inv.Violated
			for j, r := range inv.Requests {
				invariants[i].Requests[j].Violated += r.Violated
			}
		}
		for i := range p.Findings {
			f := &p.Findings[i]
			t.addFinding(f.Signature, f)
			if best := smallest[f.Signature]; best == nil || f.smallerThan(best) {
				smallest[f.Signature] = f
			}
		}
		for _, x := range p.Troubles {
			t.addTrouble(x)
		}
	}
	slices.SortFunc(c.Shards, func(a, b Shard) int { return a.Index - b.Index })
	c.Reached, c.Invariants = reached, invariants
	c.Findings, c.Troubles = t.findings(), t.troubleList()
	for i := range c.Findings {
		f := &c.Findings[i]
		best := smallest[f.Signature]
		f.Sentence, f.Disturbances, f.Story, f.Repro, f.Shrunk = best.Sentence, best.Disturbances, best.Story, best.Repro, best.Shrunk
	}
	c.name()
	c.sum()
	c.conclude()
}

// smallerThan reports whether the schedule of a finding is the one to be shown of two.
func (f *Finding) smallerThan(o *Finding) bool {
	if (f.Repro == nil) != (o.Repro == nil) {
		return f.Repro != nil
	}
	if f.Disturbances != o.Disturbances {
		return f.Disturbances < o.Disturbances
	}
	if len(f.Story) != len(o.Story) {
		return len(f.Story) < len(o.Story)
	}
	return f.Seed < o.Seed
}
