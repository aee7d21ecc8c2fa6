package reports

import (
	"cmp"
	"slices"
	"sort"

	"github.com/skewproof/skewproof/internal/history"
)

// Class says who could have served a request, by what the servers' own nopeer documents listed while it was under way.
type Class string

// The classes of requests.
const (
	ClassServedHere Class = "servedHere" // the server that was asked serves the resource itself
	ClassSkewed     Class = "skewed"     // it does not, while another live one does: the Mixed Version Proxy's business
	ClassUnserved   Class = "unserved"   // no live server serves it
	ClassDiscovery  Class = "discovery"  // about no resource: discovery, health
	ClassDown       Class = "down"       // the server that was asked was not running
	ClassUnknown    Class = "unknown"    // what was served changed while it was under way, or was not known
)

var classes = []Class{ClassServedHere, ClassSkewed, ClassUnserved, ClassDiscovery, ClassDown, ClassUnknown}

func (c Class) order() int { return slices.Index(classes, c) }

// groundTruth answers who served what and when. Each server has a list of moments, in time order, at which what it serves
// changed.
type groundTruth map[string][]moment

// moment is when something changed. With neither a process gone nor a set, what the server serves is unknown from then on.
type moment struct {
	at      history.Time
	gone    bool
	serving map[served]bool
}

type served struct {
	gvr         history.GVR
	subresource string
}

type answer int

const (
	unknown answer = iota
	down           // there was no process
	no
	yes
)

func newGroundTruth(h *history.History) groundTruth {
	sets := map[string]map[served]bool{}
	for hash, d := range h.Documents {
		set := map[served]bool{}
		for _, r := range d.Resources {
			set[served{gvr: r.GVR}] = true
			for _, s := range r.Subresources {
				set[served{r.GVR, s.Name}] = true
			}
		}
		sets[hash] = set
	}
	truth := groundTruth{}
	for _, s := range h.Run.Servers {
		truth[s.Name] = nil
	}
	for _, s := range h.Served {
		truth[s.Server] = append(truth[s.Server], moment{at: s.At, serving: sets[s.Document]})
	}
	for server := range truth {
		for _, l := range lifecycle(h, server) {
			if gone := left(l.State); gone || l.State == history.StateStarting {
				truth[server] = append(truth[server], moment{at: l.At, gone: gone})
			}
		}
	}
	for server := range truth {
		slices.SortStableFunc(truth[server], func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	}
	return truth
}

func (t groundTruth) class(o history.Operation) Class {
	wanted := served{o.GVR, o.Subresource}
	here := t.serves(o.Server, wanted, o)
	elsewhere := no
	for server := range t {
		switch a := t.serves(server, wanted, o); {
		case server == o.Server || a == down || a == no || elsewhere == yes:
		default:
			elsewhere = a
		}
	}
	switch {
	case here == down:
		return ClassDown
	case o.Verb == history.VerbDiscovery, o.GVR == history.GVR{}:
		return ClassDiscovery
	case here == yes:
		return ClassServedHere
	case here == no && elsewhere == yes:
		return ClassSkewed
	case here == no && elsewhere == no:
		return ClassUnserved
	default:
		return ClassUnknown
	}
}

// serves reports whether the server served what was wanted during the whole operation: a change in between makes it unknown.
func (t groundTruth) serves(server string, wanted served, o history.Operation) answer {
	moments := t[server]
	first := sort.Search(len(moments), func(i int) bool { return moments[i].at > o.Start }) - 1
	if first < 0 {
		return unknown
	}
	result := moments[first].answer(wanted)
	for _, m := range moments[first+1:] {
		if m.at > o.End {
			break
		}
		if m.answer(wanted) != result {
			return unknown
		}
	}
	return result
}

func (m moment) answer(wanted served) answer {
	switch {
	case m.gone:
		return down
	case m.serving == nil:
		return unknown
	case m.serving[wanted]:
		return yes
	default:
		return no
	}
}
