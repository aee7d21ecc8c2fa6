package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
)

// ReadShard reads a campaign that is to be merged. It refuses more than [reports.ReadCampaign]:
// unknown states.
func ReadShard(path string) (*reports.Campaign, error) {
	c, err := reports.ReadCampaign(path)
	if err != nil {
		return nil, err
	}
	if err := checkShard(c); err != nil {
		return nil, fmt.Errorf("read campaign %s: %w", path, err)
	}
	return c, nil
}

func checkShard(c *reports.Campaign) error {
	states := sim.States()
	if len(c.Reached) != len(states) {
		return fmt.Errorf("it knows %d interesting states; this skewproof knows %d", len(c.Reached), len(states))
	}
	for i, s := range states {
		if c.Reached[i].State != s.String() {
			return fmt.Errorf("its state %d is %q; this skewproof's is %q", i+1, c.Reached[i].State, s)
		}
	}
	return nil
}

// MergeShards merges the shards of one campaign. It refuses shards of different campaigns,
// duplicate shards, and missing shards.
func MergeShards(parts []*reports.Campaign) (*reports.Campaign, error) {
	if len(parts) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	c := *parts[0]
	c.Shards, c.Complete = nil, true
	total := NewTally(Spec(c.Spec))
	for _, p := range parts {
		if err := sameCampaign(&c, p); err != nil {
			return nil, err
		}
		c.Shards = append(c.Shards, p.Shards...)
		c.Complete = c.Complete && p.Complete
		total.add(TallyOf(p))
	}
	slices.SortFunc(c.Shards, func(a, b reports.Shard) int { return a.Index - b.Index })
	for i, s := range c.Shards[1:] {
		if s.Index == c.Shards[i].Index {
			return nil, fmt.Errorf("shard %d of %d is given twice: each must be given once", s.Index, c.Of)
		}
	}
	if missing := missingShards(&c); missing != "" {
		return nil, fmt.Errorf("shards %s are missing: give the campaign file of each, or run it with --shard", missing)
	}
	total.fill(&c)
	nameRepros(&c)
	c.Conclude()
	return &c, nil
}

// missingShards names the first few missing shards, and says how many more are missing; "" if none
// is.
func missingShards(c *reports.Campaign) string {
	const most = 8
	var names []string
	missing := c.Of - len(c.Shards)
	for i := 1; len(names) < min(missing, most); i++ {
		if !slices.ContainsFunc(c.Shards, func(s reports.Shard) bool { return s.Index == i }) {
			names = append(names, fmt.Sprintf("%d/%d", i, c.Of))
		}
	}
	text := strings.Join(names, ", ")
	if missing > most {
		text += fmt.Sprintf(" and %d more", missing-most)
	}
	return text
}

// sameCampaign returns an error that says in what two shards of different campaigns differ.
func sameCampaign(a, b *reports.Campaign) error {
	one, _ := json.Marshal(a.Spec)
	other, _ := json.Marshal(b.Spec)
	for _, d := range []struct {
		what       string
		one, other any
	}{
		{"versions of skewproof", a.SkewproofVersion, b.SkewproofVersion},
		{"specs", string(one), string(other)},
		{"methods", a.Method, b.Method},
		{"scopes", a.Events(), b.Events()},
		{"first seeds", a.FirstSeed, b.FirstSeed},
		{"numbers of schedules", a.Wanted, b.Wanted},
		{"numbers of shards", a.Of, b.Of},
		{"settings of --strict", a.Strict, b.Strict},
	} {
		if d.one != d.other {
			return fmt.Errorf("the campaigns have different %s, %v and %v: only shards of one campaign can be merged", d.what, d.one, d.other)
		}
	}
	return nil
}
