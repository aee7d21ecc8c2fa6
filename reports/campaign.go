package reports

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim/search"
)

// The names of the files of a campaign. Beside them are the repro files of its findings.
const (
	CampaignHTML = "campaign.html"
	CampaignJSON = "campaign.json"
)

var campaignPage = template.Must(template.New("campaign.html.tmpl").Funcs(template.FuncMap{
	"sign":    sign,
	"capital": capital,
	"counted": counted,
	"covered": covered,
	"next":    func(n int) int { return n + 1 },
	"count":   func(n uint64) string { return grouped(int(n)) },
}).ParseFS(assets, "assets/campaign/*.tmpl"))

// campaignDocument is what the template is given.
type campaignDocument struct {
	*search.Campaign
	Style        template.CSS
	Policy       string
	Command      string
	ErrorPercent float64
	JSON         string
}

// WriteCampaignHTML writes what a search came to as one self-contained page, under the rules of [WriteHTML]. It has no script at all.
func WriteCampaignHTML(w io.Writer, c *search.Campaign) error {
	style, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return err
	}
	d := campaignDocument{
		Campaign: c, Style: template.CSS(style), Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + source(style),
		Command: c.Command(), ErrorPercent: 100 * search.DistinctError, JSON: CampaignJSON,
	}
	var b bytes.Buffer
	if err := campaignPage.Execute(&b, d); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// Lead says in a sentence what was searched.
func (d campaignDocument) Lead() string {
	resources := "all resources of both versions"
	if n := d.Spec.Resources; n > 0 {
		resources = counted(n, "resource") + " that tell the versions apart"
	}
	how := "Random schedules of faults, restarts and upgrades"
	if d.Method == search.MethodAll {
		how = "Every schedule of a bounded number of events"
		if d.Scope != nil && d.Schedules != d.Scope.Schedules {
			how = covered(d.Campaign) + " schedules of a bounded number of events"
		}
	}
	return fmt.Sprintf("%s on %s of %s and %s, which serve %s, in the simulator.", how, counted(d.Spec.Servers, "apiserver"), d.Spec.From, d.Spec.To, resources)
}

// First is the id of the first finding about an invariant; empty if there is none.
func (d campaignDocument) First(invariant string) string {
	for n, f := range d.Findings {
		if f.Signature.Invariant == invariant {
			return fmt.Sprintf("finding-%d", n+1)
		}
	}
	return ""
}

// Decides reports whether an invariant of that grade counts towards the verdict.
func (d campaignDocument) Decides(g invariant.Grade) bool {
	return g == invariant.GradeCore || d.Strict
}

// WriteCampaign writes a campaign into dir, which is made if it does not exist, as [CampaignJSON] and [CampaignHTML], and the repro file
// of each finding. As with [WriteAll] no reader ever sees half a file.
func WriteCampaign(dir string, c *search.Campaign) error {
	var files []file
	for _, f := range c.Findings {
		if f.Repro == nil {
			continue
		}
		body, err := f.Repro.Encode()
		if err != nil {
			return err
		}
		files = append(files, file{filepath.Join(dir, f.File), body})
	}
	return save(dir, c, []rendering[*search.Campaign]{{CampaignJSON, writeIndented[*search.Campaign]}, {CampaignHTML, WriteCampaignHTML}}, files...)
}
