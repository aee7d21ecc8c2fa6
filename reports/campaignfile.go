package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// WriteCampaign writes a campaign into dir, which is made if it does not exist, as [CampaignJSON] and [CampaignHTML], and the repro file
// of each finding. As with [WriteAll] no reader ever sees half a file.
func WriteCampaign(dir string, c *Campaign) error {
	var repros []file
	for _, f := range c.Findings {
		if len(f.Repro) == 0 {
			continue
		}
		var escaped, body bytes.Buffer
		json.HTMLEscape(&escaped, f.Repro)
		if err := json.Indent(&body, escaped.Bytes(), "", "  "); err != nil {
			return fmt.Errorf("render %s: %w", f.File, err)
		}
		body.WriteByte('\n')
		repros = append(repros, file{filepath.Join(dir, f.File), body.Bytes()})
	}
	return save(dir, c, []rendering[*Campaign]{{CampaignJSON, writeIndented[*Campaign]}, {CampaignHTML, WriteCampaignHTML}}, repros...)
}

// MaxShards bounds how many parts a campaign is searched in.
const MaxShards = 10_000

var campaigns = readable[*Campaign]{"campaign", CampaignKind, "search again to write a new campaign", false, (*Campaign).check}

// ReadCampaign reads a campaign that was saved. It refuses any other document, one with fields it does not know, and one that contradicts
// itself; the error names the file and what is wrong with it.
func ReadCampaign(path string) (*Campaign, error) { return campaigns.read(path) }

// check refuses what contradicts itself, and what a merged campaign could not name files by.
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
	known := invariant.All()
	if len(c.Invariants) != len(known) {
		return fmt.Errorf("it knows %d invariants; this skewproof knows %d", len(c.Invariants), len(known))
	}
	for i, inv := range known {
		if c.Invariants[i].Name != inv.Name {
			return fmt.Errorf("its invariant %d is %q; this skewproof's is %q", i+1, c.Invariants[i].Name, inv.Name)
		}
		if n := len(c.Invariants[i].Requests); n != len(RequestKinds) {
			return fmt.Errorf("it knows %d kinds of requests; this skewproof knows %d", n, len(RequestKinds))
		}
	}
	for _, f := range c.Findings {
		if !slices.ContainsFunc(known, func(inv invariant.Invariant) bool { return inv.Name == f.Invariant }) {
			return fmt.Errorf("a finding is of the invariant %q, which this skewproof does not know", f.Invariant)
		}
		if strings.ContainsAny(f.File, `/\`) || f.File == ".." || f.File == "" && len(f.Repro) > 0 {
			return fmt.Errorf("a finding's file %q is no plain name", f.File)
		}
	}
	if outcome := c.conclusion().Outcome; outcome != c.Verdict.Outcome {
		return fmt.Errorf("its verdict is %q, and what it found makes %q: the file was altered", c.Verdict.Outcome, outcome)
	}
	return nil
}
