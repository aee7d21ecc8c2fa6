package invariant

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// The functions in this file find the circumstances of a violation. These are the fields of a
// Signature that Core leaves out.

var obstacles = []Obstacle{
	ObstacleConfiguration, ObstacleProxyOff, ObstacleBrokenOff, ObstacleDiscovery, ObstacleProcess, ObstacleLink, ObstacleEtcd,
	ObstacleNone,
}

func stronger(a, b Obstacle) Obstacle {
	return obstacles[min(slices.Index(obstacles, a), slices.Index(obstacles, b))]
}

// obstacle is the strongest obstacle on the way from the asked server to another server in w. If
// the answer is an error of the server, or missing, a failed fetch of discovery does not count,
// because a server that lacks knowledge answers 404 or with a document.
func (f *Facts) obstacle(o *observation, to string, w window) Obstacle {
	var not []Obstacle
	if o.op.Status == 0 || o.op.Status >= http.StatusInternalServerError {
		not = []Obstacle{ObstacleBrokenOff, ObstacleDiscovery}
	}
	link := f.linkObstacle(o.op.Server, to, w, not...)
	return stronger(link, f.processObstacle(to, w, func(s span) bool { return !s.up || s.phase != phaseReady }))
}

// obstacleBefore is the strongest obstacle on that way in a past time. It does not count starts and
// ends of processes, because those are changes.
func (f *Facts) obstacleBefore(from, to string, w window) Obstacle {
	link := stronger(f.linkObstacle(from, to, w), f.unansweredBefore(from, to, w))
	return stronger(link, f.processObstacle(to, w, func(s span) bool { return s.phase == phasePaused }))
}

// dialTimeout is how long a released server waits for a connection that nobody answers. It fetches
// nothing from any peer meanwhile. endpointLease is how long peers know an address that is not
// renewed. Sources: tlsTransportCache.get in k8s.io/client-go, transport/cache.go;
// DefaultEndpointReconcilerTTL in k8s.io/kubernetes, pkg/controlplane/instance.go.
const (
	dialTimeout   = 30 * time.Second
	endpointLease = 15 * time.Second
)

// unansweredBefore is ObstacleConfiguration if the peer advertised an address from which no answer
// comes, so recently that it can explain an answer in w. Other obstacles end a connection at once,
// or do so when they are removed.
func (f *Facts) unansweredBefore(from, to string, w window) Obstacle {
	for _, fault := range f.faults[link{from, to}] {
		if fault.Detail != history.DetailUnroutable {
			continue
		}
		known := later(fault.End, endpointLease) // a connection may begin as late as this
		for _, l := range f.lifecycle {
			if l.Server == to && l.State == history.StateReady && l.At >= fault.End {
				known = min(known, l.At)
			}
		}
		// The peer is asked again after the timeout. w begins changeLasts before the answer.
		if (window{fault.Start, later(known, dialTimeout+f.bounds.Staleness-changeLasts)}).overlaps(w) {
			return ObstacleConfiguration
		}
	}
	return ObstacleNone
}

// anyObstacle is the strongest obstacle between any two servers in a past time.
func (f *Facts) anyObstacle(w window) Obstacle {
	strongest, known := f.anyObstacles[w]
	if known {
		return strongest
	}
	for _, from := range f.servers {
		for _, to := range f.servers {
			strongest = stronger(strongest, f.obstacleBefore(from.name, to.name, w))
		}
	}
	f.anyObstacles[w] = strongest
	return strongest
}

func (f *Facts) processObstacle(of string, w window, is func(span) bool) Obstacle {
	if slices.ContainsFunc(f.byName[of].line, func(s span) bool { return is(s) && s.overlaps(w.widen(settle)) }) {
		return ObstacleProcess
	}
	return ObstacleNone
}

// linkObstacle is the strongest obstacle on a link in w, leaving out those in not.
func (f *Facts) linkObstacle(from, to string, w window, not ...Obstacle) Obstacle {
	strongest := ObstacleNone
	for _, fault := range f.linkFaults(link{from, to}, w.widen(settle)) {
		if o := obstacleOf(fault); !slices.Contains(not, o) {
			strongest = stronger(strongest, o)
		}
	}
	return strongest
}

func obstacleOf(fault history.Fault) Obstacle {
	switch {
	case fault.Kind == history.FaultMisconfiguration:
		return ObstacleConfiguration
	case fault.Kind == history.FaultProxyOff:
		return ObstacleProxyOff
	case fault.Kind == history.FaultBreakDiscovery && strings.Contains(fault.Detail, "break"):
		return ObstacleBrokenOff
	case fault.Kind == history.FaultBreakDiscovery:
		return ObstacleDiscovery
	case fault.Blocks || !delaying[fault.Kind]:
		return ObstacleLink
	default:
		return ObstacleNone
	}
}

// changesSince is the time from which a change counts for a violation. It is changeLasts before the
// asked server began to answer this way, or the start of the first fault that was active then.
func (f *Facts) changesSince(o *observation) history.Time {
	from := later(o.likewise, -changeLasts)
	first := from
	for _, fault := range f.faultList {
		if fault.Start <= o.likewise && fault.End >= from {
			first = min(first, fault.Start)
		}
	}
	return first
}

// since says how long before the operation the last disturbance ended.
func (f *Facts) since(o *observation) Since {
	since := SinceLong
	for _, d := range f.disturbances {
		switch {
		case d.from > o.op.Start:
		case d.to > o.op.Start:
			return SinceLong
		case later(d.to, f.bounds.Convergence) >= o.op.Start:
			since = SinceRecent
		}
	}
	return since
}

// change is the strongest change between from and the violation.
func (f *Facts) change(o *observation, s situation, candidates []Candidate, from history.Time) Change {
	serves := func(name string) bool {
		return slices.Contains(s.lost, name) || slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Server == name })
	}
	if len(candidates) == 0 && o.resource != nil && o.resource.key != (key{}) && f.redefined(o, from) == ChangeDeletion {
		return ChangeDeletion // the reason why no server serves it
	}
	capable, other := false, false
	for _, l := range f.lifecycle {
		first := l.Incarnation == 1 && (l.State == history.StateStarting || l.State == history.StateReady)
		pause := l.State == history.StatePaused || l.State == history.StateResumed
		switch {
		case f.learned(l) < from || l.At > o.op.End || pause:
		case first && !f.obstructed(l.At, o.op.Server, candidates): // every run begins with these states
		case l.Server == o.op.Server:
			return ChangeAsked
		case serves(l.Server):
			capable = true
		default:
			other = true
		}
	}
	switch {
	case capable:
		return ChangeCapable
	case other:
		return ChangeOther
	case f.leaseDeletedIn(window{from, o.op.End}):
		return ChangeLease
	default:
		return f.redefined(o, from)
	}
}

// learned is when peers could know of a change of a server. If the change is that the server became
// ready, they also need the time to learn about it.
func (f *Facts) learned(l history.Lifecycle) history.Time {
	if l.State == history.StateReady {
		if life, ok := f.byName[l.Server].lifetimeOf(l.Incarnation); ok {
			return max(l.At, life.learned())
		}
	}
	return l.At
}

// obstructed reports whether an obstacle kept the asked server, when a server had become ready,
// from learning about the servers that could serve the request. For discovery any server counts.
func (f *Facts) obstructed(ready history.Time, asked string, candidates []Candidate) bool {
	learning := window{ready, later(ready, f.bounds.Staleness)}
	if len(candidates) == 0 {
		return f.anyObstacle(learning) != ObstacleNone
	}
	return f.etcdObstacle(asked, learning) != ObstacleNone || slices.ContainsFunc(candidates, func(c Candidate) bool {
		return f.obstacleBefore(asked, c.Server, learning) != ObstacleNone
	})
}

// redefined says whether some server, without a restart, stopped serving the resource at any time
// before the operation, or began to serve it since from. For discovery any resource counts.
func (f *Facts) redefined(o *observation, from history.Time) Change {
	change := ChangeNone
	for _, s := range f.servers {
		var before *document
		incarnation := 0
		for _, piece := range s.served {
			if piece.from > o.op.End {
				break
			}
			if piece.doc == nil || piece.doc == before {
				continue
			}
			if before != nil && piece.incarnation == incarnation {
				switch {
				case lessIn(before, piece.doc, o):
					return ChangeDeletion
				case piece.from >= from && lessIn(piece.doc, before, o):
					change = ChangeCreation
				}
			}
			before, incarnation = piece.doc, piece.incarnation
		}
	}
	return change
}

// lessIn reports whether the first document lists the subject of the operation and the second does
// not.
func lessIn(had, has *document, o *observation) bool {
	if o.resource != nil && o.resource.key != (key{}) {
		return had.lists[o.resource.key] && !has.lists[o.resource.key]
	}
	for k := range had.lists {
		if !has.lists[k] {
			return true
		}
	}
	return false
}

// generation names the older designs of upstream's proxy. It is "" for the design of v1.35 and
// newer.
func generation(version string) string {
	switch minor := semver.MajorMinor(version); {
	case semver.Compare(minor, "v1.28") < 0: // there was no proxy, or the version is unknown
		return ""
	case semver.Compare(minor, "v1.34") < 0:
		return "proxy of v1.28"
	case minor == "v1.34":
		return "proxy of v1.34"
	default:
		return ""
	}
}

// These words begin what a setup says about parts of a server that do not matter to every request.
const (
	frontProxyWords  = "its front-proxy certificate: " // matters to the peers to which the server forwards requests
	authorityWords   = "its peer authority: "          // likewise
	advertisedWords  = "advertising "                  // matters to the peers that forward requests to the server
	delayWords       = "serving for "                  // matters while the server stops
	terminationWords = "waiting up to "                // likewise
	connectWords     = "its request to connect anew "  // matters to a request on a connection that ends
	rotatedWords     = ": rotated"                     // ends the setup of a certificate of the same authority; likewise
)

// matters reports whether a part of a server's setup can matter to o.
func (f *Facts) matters(what string, s *server, o *observation) bool {
	// What a server knows of its peers decides on a 404 and on a document. It fetches that again on a
	// new connection if the old one has ended.
	fromKnowledge := o.op.Status == http.StatusNotFound || o.op.Document != ""
	switch {
	case fromKnowledge && (strings.HasPrefix(what, connectWords) || strings.HasSuffix(what, rotatedWords)):
		return false
	case strings.HasPrefix(what, frontProxyWords), strings.HasPrefix(what, authorityWords):
		return s == o.asked
	case strings.HasPrefix(what, advertisedWords):
		return s != o.asked
	case strings.HasPrefix(what, delayWords), strings.HasPrefix(what, terminationWords):
		return f.processObstacle(s.name, o.window, func(s span) bool { return s.phase == phaseStopping }) != ObstacleNone
	}
	return true
}

// setup says how the asked server and the servers that could have served the request were set up.
// It lists only what is unusual, without names of servers. It omits an emulated version, because
// Roles shows it.
func (f *Facts) setup(o *observation, candidates []Candidate) string {
	var all []string
	add := func(who string, s *server) {
		for _, what := range f.unusual(f.setups[process{s.name, s.line.at(o.op.Start).incarnation}]) {
			if !f.matters(what, s, o) {
				continue
			}
			if what = who + ": " + what; !slices.Contains(all, what) {
				all = append(all, what)
			}
		}
	}
	if old := generation(o.asked.line.at(o.op.Start).version); old != "" {
		all = append(all, "asked server: "+old)
	}
	if f.uninformed(o) {
		all = append(all, withoutDiscovery)
	}
	if f.alone(o) {
		all = append(all, "asked server: alone")
	}
	add("asked server", o.asked)
	for _, c := range candidates {
		if c.Server != o.op.Server {
			add("serving server", f.byName[c.Server])
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// uninformed reports whether servers could not read the discovery of their peers at any time since
// the process of the asked server started. What it lacks since then, it fetches again only later.
func (f *Facts) uninformed(o *observation) bool {
	return f.withdrawnIn(window{o.asked.line.at(o.op.Start).startOf(o.asked.line), o.op.End})
}

// alone reports whether no other server was up during the operation.
func (f *Facts) alone(o *observation) bool {
	return !slices.ContainsFunc(f.servers, func(s *server) bool {
		return s != o.asked && slices.ContainsFunc(s.line, func(p span) bool { return p.up && p.overlaps(o.window) })
	})
}

// unusual splits the words about a setup and omits names of servers and the emulated version.
func (f *Facts) unusual(setup string) []string {
	var all []string
	for what := range strings.SplitSeq(setup, ", ") {
		if what == "" || strings.HasPrefix(what, "emulating ") {
			continue
		}
		if name, of, ok := strings.Cut(what, " of "); ok && f.byName[of] != nil {
			what = name + " of another server"
		}
		all = append(all, what)
	}
	return all
}
