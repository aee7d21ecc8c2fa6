package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

// pressure is one class of requests: a field of history.Pressure.
type pressure struct {
	what   string // for people, in the plural
	field  func(*history.Pressure) *int
	counts func(*Facts, *observation) bool
}

var (
	operations = pressure{
		"answered operations", func(p *history.Pressure) *int { return &p.Operations },
		func(_ *Facts, o *observation) bool { return o.op.Status != 0 },
	}
	skewed = pressure{
		"skewed operations", func(p *history.Pressure) *int { return &p.Skewed },
		func(_ *Facts, o *observation) bool { return o.presses() && o.skewed() },
	}
	unreachable = pressure{
		"operations whose every capable server was out of reach", func(p *history.Pressure) *int { return &p.Unreachable },
		func(f *Facts, o *observation) bool {
			return o.presses() && o.skewed() && f.cutOff(o, o.situation, f.untilBound(o))
		},
	}
	unserved = pressure{
		"operations on resources that no server serves", func(p *history.Pressure) *int { return &p.Unserved },
		func(_ *Facts, o *observation) bool { return o.presses() && o.unserved() },
	}
	passedOn = pressure{
		"operations passed on, by the servers' logs", func(p *history.Pressure) *int { return &p.PassedOn },
		func(_ *Facts, o *observation) bool { return !o.shared && o.forwarded() },
	}
	writesDone = pressure{
		"skewed writes that succeeded", func(p *history.Pressure) *int { return &p.Writes },
		func(_ *Facts, o *observation) bool {
			return writes(o.op) && !dryRun(o.op) && succeeded(o.op.Status) && o.presses() && o.skewed()
		},
	}
	subresources = pressure{
		"skewed operations on subresources of what the asked server serves", func(p *history.Pressure) *int { return &p.Subresources },
		func(f *Facts, o *observation) bool {
			return o.op.Subresource != "" && o.op.Status != 0 && o.presses() && o.skewed() && f.requested(o) == MechanismSubresource
		},
	}
	watches = pressure{
		"skewed watches that delivered events", func(p *history.Pressure) *int { return &p.Watches },
		func(_ *Facts, o *observation) bool { return o.op.Status == http.StatusOK && o.streams() },
	}
	upgrades = pressure{
		"skewed upgraded connections (101) that delivered events", func(p *history.Pressure) *int { return &p.Upgrades },
		func(_ *Facts, o *observation) bool {
			return o.op.Status == http.StatusSwitchingProtocols && o.streams()
		},
	}
	lists = pressure{
		"skewed lists by label", func(p *history.Pressure) *int { return &p.Lists },
		func(_ *Facts, o *observation) bool {
			if o.op.Verb != "list" || !o.presses() || !o.skewed() {
				return false
			}
			_, _, ok := listByLabel(o.op)
			return ok
		},
	}
	formats = pressure{
		"skewed operations answered in another format than JSON", func(p *history.Pressure) *int { return &p.Formats },
		func(_ *Facts, o *observation) bool {
			return succeeded(o.op.Status) && mediaTypeOf(o.op) != "application/json" && o.presses() && o.skewed()
		},
	}
	forgedHops = pressure{
		"operations with a forged hop, on what the asked server does not serve", func(p *history.Pressure) *int { return &p.ForgedHops },
		func(_ *Facts, o *observation) bool {
			return o.op.Rerouted && o.op.Status != 0 && o.presses() && (o.skewed() || o.unserved())
		},
	}
	mergedDocuments = pressure{
		"merged discovery documents", func(p *history.Pressure) *int { return &p.MergedDocuments },
		func(f *Facts, o *observation) bool { _, ok := f.merged(o.op); return ok },
	}
	ownDocuments = pressure{
		"discovery documents with profile=nopeer", func(p *history.Pressure) *int { return &p.OwnDocuments },
		func(_ *Facts, o *observation) bool { return o.got(history.VerbNoPeer) },
	}
	legacyDocuments = pressure{
		"discovery documents in older formats", func(p *history.Pressure) *int { return &p.LegacyDocuments },
		func(_ *Facts, o *observation) bool { return o.got(history.VerbLegacy) },
	}
	descriptions = pressure{
		"OpenAPI descriptions", func(p *history.Pressure) *int { return &p.Descriptions },
		func(_ *Facts, o *observation) bool { return o.got(history.VerbOpenAPI) },
	}
)

// pressures are all classes, in the order in which they are shown.
var pressures = []pressure{
	operations, skewed, unreachable, unserved, passedOn, writesDone, subresources, watches, upgrades, lists, formats, forgedHops,
	mergedDocuments, ownDocuments, legacyDocuments, descriptions,
}

// presses reports whether the operation is about a resource and its client waited for the answer.
func (o *observation) presses() bool {
	return o.resource != nil && !o.localDocument() && o.op.Failure != history.FailureCanceled
}

// streams reports whether the operation is a skewed watch that delivered an event. The load itself
// may have ended it.
func (o *observation) streams() bool {
	return o.op.Verb == "watch" && o.op.Events > 0 && o.resource != nil && o.skewed()
}

// got reports whether the operation is a request of this verb that got a document.
func (o *observation) got(verb string) bool {
	return o.op.Verb == verb && o.op.Document != "" && o.op.Failure == history.FailureNone
}

// measurePressure counts what the operations put on the subject, as far as the ground truth is
// known.
func (f *Facts) measurePressure() {
	for _, o := range f.observations {
		for _, p := range pressures {
			if p.counts(f, o) {
				*p.field(&f.pressure)++
			}
		}
	}
}

// missingPressure names every pressure that was not reached.
func (f *Facts) missingPressure(ps []pressure) []string {
	var out []string
	for _, p := range append([]pressure{operations}, ps...) {
		if got, least := *p.field(&f.pressure), *p.field(&f.run.Pressure); got < least {
			out = append(out, fmt.Sprintf("too little pressure: %d of at least %d %s", got, least, p.what))
		}
	}
	return out
}

// Pressure is one class of requests in a run.
type Pressure struct {
	// Class says what is counted, for people, in the plural.
	Class string `json:"class"`
	// Count is how many there were, and Least how many the scenario demands; 0 if it demands none.
	Count int `json:"count"`
	Least int `json:"least,omitempty"`
}

// Pressures are all classes of which there was a request, or of which the run demands some.
func (f *Facts) Pressures() []Pressure {
	var out []Pressure
	for _, p := range pressures {
		if one := (Pressure{p.what, *p.field(&f.pressure), *p.field(&f.run.Pressure)}); one.Count > 0 || one.Least > 0 {
			out = append(out, one)
		}
	}
	return out
}
