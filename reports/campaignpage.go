package reports

import (
	"fmt"
	"io"
	"strings"
)

var (
	campaignPage = newPage("campaign/", "campaign")
	campaignHead = newHead(nil, "campaign/campaign.css")
)

// campaignDocument is the input of the template.
type campaignDocument struct {
	*Campaign
	head
	*described
	JSON   string
	Kinds  []kindRow
	Growth []growthRow
	Gaps   []gapRow
	States []reachRow
}

// WriteCampaignHTML writes a campaign as one self-contained page without scripts; see [WriteHTML].
func WriteCampaignHTML(w io.Writer, c *Campaign) error {
	return writePage(w, campaignPage, campaignDocument{
		Campaign: c, head: campaignHead, described: newDescribed(), JSON: CampaignJSON, Kinds: newKinds(c), Growth: newGrowth(c),
		Gaps: newGaps(c), States: newReached(c),
	})
}

// Lead says in a sentence what was searched.
func (d campaignDocument) Lead() string {
	resources := "all resources of both versions"
	if n := d.Spec.Resources; n > 0 {
		resources = counted(n, "resource") + " that tell the versions apart"
	}
	how := "Random schedules of faults, restarts and upgrades"
	if r := d.Real; r != nil {
		return fmt.Sprintf("%s on %s of %s, as processes, by the subject %s.", how, counted(d.Spec.Servers, "apiserver"),
			strings.Join(r.Versions, ", "), r.Subject)
	}
	if d.Method == MethodAll {
		how = "Every schedule of a bounded number of events"
		if d.Scope != nil && d.Schedules != d.Scope.Schedules {
			how = covered(d.Campaign) + " schedules of a bounded number of events"
		}
	}
	return fmt.Sprintf("%s on %s, which serve %s, in the simulator.", how, d.Spec.Shape(), resources)
}

// NewRemoval reports whether something else removes a finding than the one before it, so that what
// removes it must be said.
func (c *Campaign) NewRemoval(n int) bool {
	f := &c.Findings[n]
	return f.Removal != nil && (n == 0 || c.Findings[n-1].Removal == nil || f.Removal.String() != c.Findings[n-1].Removal.String())
}

// First is the id of the first finding about an invariant. It is empty if there is none.
func (d campaignDocument) First(invariant string) string {
	for n, f := range d.Findings {
		if f.Invariant == invariant {
			return fmt.Sprintf("violation-%d", n+1)
		}
	}
	return ""
}
