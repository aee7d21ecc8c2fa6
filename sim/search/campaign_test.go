package search

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// written is a campaign as it is read back from its file.
func written(t *testing.T, c *Campaign) (*Campaign, error) {
	t.Helper()
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return DecodeCampaign(bytes.NewReader(body))
}

func TestACampaignIsReadBack(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 20, Version: "v1", Machine: "one"})
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "campaign.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := ReadCampaign(path)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encoded(t, c), encoded(t, again); a != b {
		t.Errorf("written\n%s\nread back\n%s", a, b)
	}
}

// Silence about what was never put to the test must not look like a proof: the simulator has no certificates.
func TestACampaignSaysWhatItExercised(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: -1})
	for _, inv := range c.Invariants {
		switch {
		case inv.Exercised > c.Judged, inv.Violated > inv.Exercised:
			t.Errorf("%s: %d of %d histories exercised it, %d violated it", inv.Name, inv.Exercised, c.Judged, inv.Violated)
		case inv.Name == "NoFalseNotFound" && inv.Exercised == 0, inv.Name == "OnlyTrustedPeers" && inv.Exercised > 0:
			t.Errorf("%s: exercised in %d histories", inv.Name, inv.Exercised)
		}
	}
}

func TestABrokenCampaignIsRefused(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 5})
	for what, change := range map[string]func(c *Campaign){
		"another kind":             func(c *Campaign) { c.Kind = "RunReport" },
		"another version":          func(c *Campaign) { c.APIVersion = "skewproof/v2" },
		"no shards":                func(c *Campaign) { c.Shards = nil },
		"a shard too many":         func(c *Campaign) { c.Shards = append(c.Shards, c.Shards[0]) },
		"more shards than any has": func(c *Campaign) { c.Of = MaxShards + 1 },
		"another sum":              func(c *Campaign) { c.Schedules++ },
		"a verdict that is none":   func(c *Campaign) { c.Verdict.Outcome = invariant.OutcomePass },
		"another state":            func(c *Campaign) { c.Reached[0].State = "bliss" },
		"another invariant":        func(c *Campaign) { c.Invariants[0].Name = "NoSuch" },
		"fewer states":             func(c *Campaign) { c.Reached = c.Reached[1:] },
		"a finding of none":        func(c *Campaign) { c.Findings[0].Invariant = "../../x" },
		"a file elsewhere":         func(c *Campaign) { c.Findings[0].File = "../../etc/passwd" },
	} {
		altered, err := written(t, c)
		if err != nil {
			t.Fatal(err)
		}
		change(altered)
		if _, err := written(t, altered); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	for _, text := range []string{
		"", "{}", "[1]", `{"apiVersion":"skewproof/v1alpha1","kind":"Campaign","more":true}`,
		`{"apiVersion":"skewproof/v1alpha1","kind":"Campaign","tracesSketch":"AAAA"}`,
	} {
		if _, err := DecodeCampaign(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

// What shards find together must be what one search finds.
func TestShardsAreTheWhole(t *testing.T) {
	spec := specOf("upstream-1.37", 3)
	o := Options{Seeds: 53, ShrinkRuns: -1, Version: "v1"}
	whole := explored(t, spec, o)
	var parts []*Campaign
	for i := 3; i > 0; i-- {
		o.Shard, o.Shards = i, 3
		part, err := written(t, explored(t, spec, o))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	merged, err := MergeCampaigns(parts)
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Shards) != 3 || merged.Shards[0].Index != 1 {
		t.Errorf("shards %+v", merged.Shards)
	}
	merged.Of = 1
	for i := range merged.Findings { // the seed that a finding is shown by may be another shard's first
		merged.Findings[i].Repro, whole.Findings[i].Repro = nil, nil
		merged.Findings[i].File, whole.Findings[i].File = "", ""
		merged.Findings[i].Story, whole.Findings[i].Story = nil, nil
		merged.Findings[i].Sentence, whole.Findings[i].Sentence = "", ""
		merged.Findings[i].Disturbances, whole.Findings[i].Disturbances = 0, 0
	}
	if a, b := deterministic(t, whole), deterministic(t, merged); a != b {
		t.Errorf("the whole\n%s\nmerged\n%s", a, b)
	}
}

func TestWhatDoesNotBelongTogetherIsNotMerged(t *testing.T) {
	shard := func(i, n int, change func(spec *Spec, o *Options)) *Campaign {
		spec, o := specOf("reference", 2), Options{Seeds: 6, Shard: i, Shards: n, ShrinkRuns: -1, Version: "v1"}
		if change != nil {
			change(&spec, &o)
		}
		return explored(t, spec, o)
	}
	one := shard(1, 2, nil)
	for what, c := range map[string]struct {
		parts []*Campaign
		says  string
	}{
		"nothing":           {nil, "nothing to merge"},
		"one of two":        {[]*Campaign{one}, "2/2 are missing"},
		"two of a dozen":    {[]*Campaign{shard(2, 12, nil), shard(11, 12, nil)}, "shards 1/12, 3/12, 4/12, 5/12, 6/12, 7/12, 8/12, 9/12 and 2 more are missing"},
		"one twice":         {[]*Campaign{one, one}, "shard 1 of 2 is given twice"},
		"another policy":    {[]*Campaign{one, shard(2, 2, func(s *Spec, _ *Options) { s.Policy = "upstream-1.37" })}, "different specs"},
		"other requests":    {[]*Campaign{one, shard(2, 2, func(s *Spec, _ *Options) { s.Requests = 7 })}, "different specs"},
		"another program":   {[]*Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Version = "v2" })}, "different versions of skewproof"},
		"other seeds":       {[]*Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.First = 99 })}, "different first seeds"},
		"another number":    {[]*Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Seeds = 9 })}, "different numbers of schedules"},
		"of another number": {[]*Campaign{one, shard(2, 3, nil)}, "different numbers of shards"},
		"strict":            {[]*Campaign{one, shard(2, 2, func(_ *Spec, o *Options) { o.Strict = true })}, "--strict"},
	} {
		if _, err := MergeCampaigns(c.parts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", what, err, c.says)
		}
	}
}

func TestDistinctThingsAreCounted(t *testing.T) {
	for _, n := range []uint64{0, 1, 10, 1000, 20_000, 300_000} {
		var a, b, both Distinct
		for i := range n {
			both.Add(i)
			both.Add(i) // again
			if i%2 == 0 {
				a.Add(i)
			} else {
				b.Add(i)
			}
		}
		a.Merge(&b)
		if a.Count() != both.Count() {
			t.Errorf("%d: %d merged, %d at once", n, a.Count(), both.Count())
		}
		if off := math.Abs(float64(both.Count()) - float64(n)); off > 4*DistinctError*float64(n) {
			t.Errorf("%d things are counted as %d", n, both.Count())
		}
		text, err := both.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again Distinct
		if err := again.UnmarshalText(text); err != nil || again.Count() != both.Count() {
			t.Errorf("%d things are read back as %d, error %v", both.Count(), again.Count(), err)
		}
	}
}

// What violations have in common must not depend on what servers are called.
func TestCausesNameNoServer(t *testing.T) {
	for cause, want := range map[string]string{
		"404 though a could be reached":           "404 though S could be reached",
		"404 though a, c served it, out of reach": "404 though S served it, out of reach",
		"it was passed on twice (b→a→c)":          "it was passed on twice (S→S→S)",
		"/apis: other resources at the same time": "/apis: other resources at the same time",
		"c took admin for system:anonymous":       "S took admin for system:anonymous",
		"503 rather than 404":                     "503 rather than 404",
	} {
		if got := anonymous(cause, []history.Server{{Name: "a"}, {Name: "b"}, {Name: "c"}}); got != want {
			t.Errorf("%q becomes %q, want %q", cause, got, want)
		}
	}
}
