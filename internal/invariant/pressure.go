package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

// pressure is one class of requests, of objects in etcd, or of events that informers got. It stands
// for one field of history.Pressure.
type pressure struct {
	what   string // for people, in the plural
	field  func(*history.Pressure) *int
	counts func(*Facts, *observation) bool // nil: the class does not count requests
	// objects counts objects; nil: none.
	objects func(*Facts, *object) bool
	// events counts events that informers got; nil: none.
	events func(*Facts, *informer, *history.Delivery) bool
}

var (
	operations = pressure{
		what: "answered operations", field: func(p *history.Pressure) *int { return &p.Operations },
		counts: func(_ *Facts, o *observation) bool { return o.op.Status != 0 },
	}
	skewed = pressure{
		what: "skewed operations", field: func(p *history.Pressure) *int { return &p.Skewed },
		counts: func(_ *Facts, o *observation) bool { return o.presses() && o.skewed() },
	}
	unreachable = pressure{
		what: "operations whose every capable server was out of reach", field: func(p *history.Pressure) *int { return &p.Unreachable },
		counts: func(f *Facts, o *observation) bool {
			return o.presses() && o.skewed() && f.cutOff(o, *o.situation, f.untilBound(o))
		},
	}
	unserved = pressure{
		what: "operations on resources that no server serves", field: func(p *history.Pressure) *int { return &p.Unserved },
		counts: func(_ *Facts, o *observation) bool { return o.presses() && o.unserved() },
	}
	passedOn = pressure{
		what: "operations passed on, by the servers' logs", field: func(p *history.Pressure) *int { return &p.PassedOn },
		counts: func(_ *Facts, o *observation) bool { return !o.shared && o.forwarded() },
	}
	writesDone = pressure{
		what: "skewed writes that succeeded", field: func(p *history.Pressure) *int { return &p.Writes },
		counts: func(_ *Facts, o *observation) bool {
			return writes(o.op) && !dryRun(o.op) && succeeded(o.op.Status) && o.presses() && o.skewed()
		},
	}
	subresources = pressure{
		what:  "skewed operations on subresources of what the asked server serves",
		field: func(p *history.Pressure) *int { return &p.Subresources },
		counts: func(f *Facts, o *observation) bool {
			return o.op.Subresource != "" && o.op.Status != 0 && o.presses() && o.skewed() && f.requested(o) == MechanismSubresource
		},
	}
	watches = pressure{
		what: "skewed watches that delivered events", field: func(p *history.Pressure) *int { return &p.Watches },
		counts: func(_ *Facts, o *observation) bool { return o.op.Status == http.StatusOK && o.streams() },
	}
	upgrades = pressure{
		what: "skewed upgraded connections (101) that delivered events", field: func(p *history.Pressure) *int { return &p.Upgrades },
		counts: func(_ *Facts, o *observation) bool {
			return o.op.Status == http.StatusSwitchingProtocols && o.streams()
		},
	}
	lists = pressure{
		what: "skewed lists by label", field: func(p *history.Pressure) *int { return &p.Lists },
		counts: func(_ *Facts, o *observation) bool {
			if o.op.Verb != "list" || !o.presses() || !o.skewed() {
				return false
			}
			_, _, ok := listByLabel(o.op)
			return ok
		},
	}
	formats = pressure{
		what: "skewed operations answered in another format than JSON", field: func(p *history.Pressure) *int { return &p.Formats },
		counts: func(_ *Facts, o *observation) bool {
			return succeeded(o.op.Status) && mediaTypeOf(o.op) != "application/json" && o.presses() && o.skewed()
		},
	}
	forgedHops = pressure{
		what:  "operations with a forged hop, on what the asked server does not serve",
		field: func(p *history.Pressure) *int { return &p.ForgedHops },
		counts: func(_ *Facts, o *observation) bool {
			return o.op.Rerouted && o.op.Status != 0 && o.presses() && (o.skewed() || o.unserved())
		},
	}
	mergedDocuments = pressure{
		what: "merged discovery documents", field: func(p *history.Pressure) *int { return &p.MergedDocuments },
		counts: func(f *Facts, o *observation) bool { _, ok := f.merged(o.op); return ok },
	}
	ownDocuments = pressure{
		what: "discovery documents with profile=nopeer", field: func(p *history.Pressure) *int { return &p.OwnDocuments },
		counts: func(_ *Facts, o *observation) bool { return o.got(history.VerbNoPeer) },
	}
	legacyDocuments = pressure{
		what: "discovery documents in older formats", field: func(p *history.Pressure) *int { return &p.LegacyDocuments },
		counts: func(_ *Facts, o *observation) bool { return o.got(history.VerbLegacy) },
	}
	descriptions = pressure{
		what: "OpenAPI descriptions", field: func(p *history.Pressure) *int { return &p.Descriptions },
		counts: func(_ *Facts, o *observation) bool { return o.got(history.VerbOpenAPI) },
	}
	owners = pressure{
		what: "objects with owners", field: func(p *history.Pressure) *int { return &p.Owners },
		objects: func(f *Facts, o *object) bool { return f.owned(o) },
	}
	informed = pressure{
		what: "events that informers got of what the asked server does not serve", field: func(p *history.Pressure) *int { return &p.Events },
		events: func(f *Facts, i *informer, d *history.Delivery) bool {
			return isEvent(d) && i.server != "" && f.informing(i, window{d.At, d.At}).local == claimNo
		},
	}
)

// pressures are all classes, in the order in which they are shown.
var pressures = []pressure{
	operations, skewed, unreachable, unserved, passedOn, writesDone, subresources, watches, upgrades, lists, formats, forgedHops,
	mergedDocuments, ownDocuments, legacyDocuments, descriptions, owners, informed,
}

// presses reports whether the operation is about a resource and the client waited for the answer.
func (o *observation) presses() bool {
	return o.resource != nil && !o.localDocument() && o.op.Failure != history.FailureCanceled
}

// streams reports whether the operation is a skewed watch that delivered an event. The load itself
// may have ended the watch.
func (o *observation) streams() bool {
	return o.op.Verb == "watch" && o.op.Events > 0 && o.resource != nil && o.skewed()
}

// got reports whether the operation is a request of this verb that got a document.
func (o *observation) got(verb string) bool {
	return o.op.Verb == verb && o.op.Document != "" && o.op.Failure == history.FailureNone
}

// measurePressure counts the pressure on the servers, as far as the ground truth is known.
func (f *Facts) measurePressure() {
	for _, p := range pressures {
		count := p.field(&f.pressure)
		for _, o := range f.observations {
			if p.counts != nil && p.counts(f, o) {
				*count++
			}
		}
		for _, o := range f.objects.all {
			if p.objects != nil && p.objects(f, o) {
				*count++
			}
		}
		for _, i := range f.informers {
			for j := range i.deliveries {
				if p.events != nil && p.events(f, i, &i.deliveries[j]) {
					*count++
				}
			}
		}
	}
}

// missingPressure names every demanded pressure that the run did not reach.
func (f *Facts) missingPressure(ps []pressure) []string {
	var out []string
	for _, p := range append([]pressure{operations}, ps...) {
		if got, least := *p.field(&f.pressure), *p.field(&f.run.Pressure); got < least {
			out = append(out, fmt.Sprintf("too little pressure: %d of at least %d %s", got, least, p.what))
		}
	}
	return out
}

// Pressure is one class of requests or objects in a run.
type Pressure struct {
	// Class says for people what is counted, in the plural.
	Class string `json:"class"`
	// Count is the number of requests or objects. Least is the number that the scenario demands, or
	// 0 if it demands none.
	Count int `json:"count"`
	Least int `json:"least,omitempty"`
}

// Pressures returns all classes that occurred or that the run demands.
func (f *Facts) Pressures() []Pressure {
	var out []Pressure
	for _, p := range pressures {
		if one := (Pressure{p.what, *p.field(&f.pressure), *p.field(&f.run.Pressure)}); one.Count > 0 || one.Least > 0 {
			out = append(out, one)
		}
	}
	return out
}
