package reports

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatRemovesAViolationIsSaid(t *testing.T) {
	for _, c := range []struct {
		removal   *Removal
		key, says string
	}{
		{nil, "", "not tried"},
		{&Removal{To: "reference", Unknown: "no time was left"}, "", "unknown which switches of the policy remove this: no time was left"},
		{&Removal{To: "reference"}, "none", "stays with all of them as in reference"},
		{&Removal{Sets: [][]string{{"A=1"}}, Smallest: true}, "A=1", "Removed by A=1."},
		{&Removal{Sets: [][]string{{"A=1", "B=2"}, {"A=1", "C=3"}}, Smallest: true}, "A=1 and B=2, or A=1 and C=3",
			"Removed by A=1 and B=2, or A=1 and C=3."},
		{&Removal{Sets: [][]string{{"A=1", "B=2", "C=3", "D=4"}}}, "A=1 and B=2 and C=3 and D=4", "a smaller set may do"},
	} {
		if got := c.removal.Key(); got != c.key {
			t.Errorf("%+v has the key %q, want %q", c.removal, got, c.key)
		}
		if got := c.removal.String(); !strings.Contains(got, c.says) {
			t.Errorf("%+v says %q, want %q", c.removal, got, c.says)
		}
	}
}

// Findings with the same cause stand together, and the cause is said once.
func TestFindingsAreGroupedByWhatRemovesThem(t *testing.T) {
	c := smallCampaign()
	one, other := &Removal{To: "reference", Sets: [][]string{{"A=1"}}, Smallest: true},
		&Removal{To: "reference", Sets: [][]string{{"B=1"}}, Smallest: true}
	f := c.Findings[0]
	c.Findings = nil
	for i, removal := range []*Removal{other, one, other, one} {
		f.Finding, f.Removal = i+1, removal
		c.Findings = append(c.Findings, f)
	}
	slices.SortStableFunc(c.Findings, CampaignFinding.Compare)
	var order []int
	var told int
	for n, f := range c.Findings {
		order = append(order, f.Finding)
		if c.NewRemoval(n) {
			told++
		}
	}
	if got := order; got[0] != 2 || got[1] != 4 || got[2] != 1 || got[3] != 3 || told != 2 {
		t.Errorf("the order is %v, and %d causes are named; want 2 4 1 3, and 2", order, told)
	}
}
