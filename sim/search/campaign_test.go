package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// written is a campaign that was read back from its file, to be merged.
func written(t *testing.T, c *reports.Campaign) (*reports.Campaign, error) {
	t.Helper()
	dir := t.TempDir()
	if err := reports.WriteCampaign(dir, c); err != nil {
		t.Fatal(err)
	}
	return ReadShard(filepath.Join(dir, reports.CampaignJSON))
}

func TestACampaignIsReadBack(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 20, CauseRuns: 60, Version: "v1", Machine: "one"})
	dir := t.TempDir()
	if err := reports.WriteCampaign(dir, c); err != nil {
		t.Fatal(err)
	}
	again, err := ReadShard(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Findings { // the repro file is the campaign's own
		r, err := ReadRepro(filepath.Join(dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := r.Encode(); err != nil || string(body) != string(f.Repro) {
			t.Errorf("%s is\n%s\nwant\n%s\nerror %v", f.File, body, f.Repro, err)
		}
	}
	if a, b := encoded(t, c), encoded(t, again); a != b {
		t.Errorf("written\n%s\nread back\n%s", a, b)
	}
}

// A report that does not mention untested invariants would look like a proof. The simulator has no
// OpenAPI documents.
func TestACampaignSaysWhatItExercised(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: -1})
	for _, inv := range c.Invariants {
		switch {
		case inv.Exercised > c.Schedules, inv.Violated > inv.Exercised:
			t.Errorf("%s: %d of %d histories exercised it, %d violated it", inv.Name, inv.Exercised, c.Schedules, inv.Violated)
		case inv.Name == "NoFalseNotFound" && inv.Exercised == 0, inv.Name == "OpenAPIDescribes" && inv.Exercised > 0:
			t.Errorf("%s: exercised in %d histories", inv.Name, inv.Exercised)
		}
	}
}

func TestABrokenCampaignIsRefused(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 5, CauseRuns: -1})
	for what, change := range map[string]func(c *reports.Campaign){
		"another kind":             func(c *reports.Campaign) { c.Kind = "RunReport" },
		"another version":          func(c *reports.Campaign) { c.APIVersion = "skewproof/v2" },
		"no shards":                func(c *reports.Campaign) { c.Shards = nil },
		"a shard too many":         func(c *reports.Campaign) { c.Shards = append(c.Shards, c.Shards[0]) },
		"more shards than any has": func(c *reports.Campaign) { c.Of = reports.MaxShards + 1 },
		"another sum":              func(c *reports.Campaign) { c.Schedules++ },
		"a verdict that is none":   func(c *reports.Campaign) { c.Verdict.Outcome = invariant.OutcomePass },
		"another state":            func(c *reports.Campaign) { c.Reached[0].State = "bliss" },
		"another invariant":        func(c *reports.Campaign) { c.Invariants[0].Name = "NoSuch" },
		"fewer states":             func(c *reports.Campaign) { c.Reached = c.Reached[1:] },
		"a finding of none":        func(c *reports.Campaign) { c.Findings[0].Invariant = "../../x" },
		"a file elsewhere":         func(c *reports.Campaign) { c.Findings[0].File = "../../etc/passwd" },
	} {
		altered, err := written(t, c)
		if err != nil {
			t.Fatal(err)
		}
		change(altered)
		path := filepath.Join(t.TempDir(), reports.CampaignJSON)
		if err := os.WriteFile(path, []byte(encoded(t, altered)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadShard(path); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	path := filepath.Join(t.TempDir(), reports.CampaignJSON)
	for _, text := range []string{"", "{}", "[1]", `{"apiVersion":"skewproof/v1alpha1","kind":"Campaign","more":true}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadShard(path); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

// Together, shards must find exactly what one search finds.
func TestShardsAreTheWhole(t *testing.T) {
	spec := specOf("upstream-1.37", 3)
	o := Options{Seeds: 53, ShrinkRuns: -1, Version: "v1"}
	whole := explored(t, spec, o)
	var parts []*reports.Campaign
	for i := 3; i > 0; i-- {
		o.Shard, o.Shards = i, 3
		part, err := written(t, explored(t, spec, o))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	merged, err := MergeShards(parts)
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Shards) != 3 || merged.Shards[0].Index != 1 {
		t.Errorf("shards %+v", merged.Shards)
	}
	last := whole.Growth[len(whole.Growth)-1]
	if last.Schedules != 53 || last.Kinds != len(whole.Findings) || len(whole.Growth) != 7 {
		t.Errorf("the whole grew to %+v", whole.Growth)
	}
	if merged.Growth != nil {
		t.Errorf("the merged shards grew: %+v", merged.Growth)
	}
	whole.Growth = nil
	merged.Of = 1
	for i := range merged.Findings { // the seed that shows a finding may belong to another shard at first
		merged.Findings[i].Repro, whole.Findings[i].Repro = nil, nil
		merged.Findings[i].File, whole.Findings[i].File = "", ""
		merged.Findings[i].Story, whole.Findings[i].Story = nil, nil
		merged.Findings[i].Sentence, whole.Findings[i].Sentence = "", ""
		merged.Findings[i].Disturbances, whole.Findings[i].Disturbances = 0, 0
		merged.Findings[i].Invariant, whole.Findings[i].Invariant = "", "" // a finding violates several
	}
	merged.Verdict.Sentence, whole.Verdict.Sentence = "", "" // it names these invariants
	if a, b := deterministic(t, whole), deterministic(t, merged); a != b {
		t.Errorf("the whole\n%s\nmerged\n%s", a, b)
	}
}

func TestWhatDoesNotBelongTogetherIsNotMerged(t *testing.T) {
	shard := func(i, n int, change func(spec *Spec, o *Options)) *reports.Campaign {
		spec, o := specOf("reference", 2), Options{Seeds: 6, Shard: i, Shards: n, ShrinkRuns: -1, Version: "v1"}
		if change != nil {
			change(&spec, &o)
		}
		return explored(t, spec, o)
	}
	one := shard(1, 2, nil)
	for what, c := range map[string]struct {
		parts []*reports.Campaign
		says  string
	}{
		"nothing":           {nil, "nothing to merge"},
		"one of two":        {[]*reports.Campaign{one}, "2/2 are missing"},
		"two of a dozen":    {[]*reports.Campaign{shard(2, 12, nil), shard(11, 12, nil)}, "shards 1/12, 3/12, 4/12, 5/12, 6/12, 7/12, 8/12, 9/12 and 2 more are missing"},
		"one twice":         {[]*reports.Campaign{one, one}, "shard 1 of 2 is given twice"},
		"another policy":    {[]*reports.Campaign{one, shard(2, 2, func(s *Spec, _ *Options) { s.Policy = "upstream-1.37" })}, "different specs"},
		"other requests":    {[]*reports.Campaign{one, shard(2, 2, func(s *Spec, _ *Options) { s.Requests = 7 })}, "different specs"},
		"another program":   {[]*reports.Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Version = "v2" })}, "different versions of skewproof"},
		"other seeds":       {[]*reports.Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.First = 99 })}, "different first seeds"},
		"another number":    {[]*reports.Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Seeds = 9 })}, "different numbers of schedules"},
		"of another number": {[]*reports.Campaign{one, shard(2, 3, nil)}, "different numbers of shards"},
		"strict":            {[]*reports.Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Strict = true })}, "--strict"},
	} {
		if _, err := MergeShards(c.parts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", what, err, c.says)
		}
	}
}
