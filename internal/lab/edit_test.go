package lab

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// edit is a history that is being altered. The base is never changed.
type edit struct {
	h    *history.History
	hops map[string][]int // of h.Hops, by operation
	// from and to are the eight seconds of deviations that do not last.
	from, to history.Time
	// server is the server whose answers change if not all do. It is an older one, so that some of its
	// requests have to cross.
	server string
	// touched counts what was altered: 0 if the deviation does not apply to the history.
	touched int
	dropped map[int]bool // of h.Hops
}

// lasts is how long deviations last that do not last for the whole run, and hangs is how long an
// answer takes that takes too long: longer than bounds.Unavailable.
const lasts, hangs = 8 * time.Second, 31 * time.Second

func newEdit(base *history.History) *edit {
	h := *base
	h.Operations, h.Hops = slices.Clone(h.Operations), slices.Clone(h.Hops)
	h.Lifecycle, h.Served, h.Deliveries, h.Faults = slices.Clone(h.Lifecycle), slices.Clone(h.Served), slices.Clone(h.Deliveries),
		slices.Clone(h.Faults)
	h.Documents = maps.Clone(h.Documents)
	e := &edit{h: &h, hops: map[string][]int{}, dropped: map[int]bool{}, server: "b", from: h.End.At * 45 / 100}
	for _, f := range h.Faults { // while there is a fault, deviations are beside it
		if f.Server == "" && f.From != "client" && f.End-f.Start > lasts {
			e.from = f.Start + 2*time.Second
		}
	}
	e.to = e.from + lasts
	for i, hop := range h.Hops {
		e.hops[hop.Operation] = append(e.hops[hop.Operation], i)
	}
	return e
}

// done returns the altered history.
func (e *edit) done() *history.History {
	if len(e.dropped) > 0 {
		var left []history.Hop
		for i, hop := range e.h.Hops {
			if !e.dropped[i] {
				left = append(left, hop)
			}
		}
		e.h.Hops = left
	}
	return e.h
}

// pick selects operations.
type pick func(*edit, *history.Operation) bool

// all selects what all picks select.
func all(picks ...pick) pick {
	return func(e *edit, o *history.Operation) bool {
		return !slices.ContainsFunc(picks, func(p pick) bool { return !p(e, o) })
	}
}

func answered(_ *edit, o *history.Operation) bool {
	return o.Status >= 200 && o.Status < 300 && o.Failure == "" && o.GVR.Resource != ""
}
func crosses(e *edit, o *history.Operation) bool {
	return slices.ContainsFunc(e.hops[o.ID], func(i int) bool { return e.h.Hops[i].Rerouted })
}
func window(e *edit, o *history.Operation) bool { return e.from <= o.Start && o.Start < e.to }
func late(e *edit, o *history.Operation) bool   { return o.Start > e.h.End.At/5 }
func inTime(e *edit, o *history.Operation) bool { return o.Start+hangs < e.h.End.At }
func there(e *edit, o *history.Operation) bool  { return o.Server == e.server }
func verb(verbs ...string) pick {
	return func(_ *edit, o *history.Operation) bool { return slices.Contains(verbs, o.Verb) }
}
func resource(_ *edit, o *history.Operation) bool { return o.Subresource == "" }
func upgrades(_ *edit, o *history.Operation) bool { return o.AsksForUpgrade() }
func not(p pick) pick                             { return func(e *edit, o *history.Operation) bool { return !p(e, o) } }
func either(p, q pick) pick {
	return func(e *edit, o *history.Operation) bool { return p(e, o) || q(e, o) }
}

var (
	reads  = verb("get", "list", history.VerbTable)
	lists  = verb("list")
	writes = verb("create", "update", "patch", "delete")
	// own are the answers of a server to what it serves itself, across those that came from a peer.
	own    = all(answered, not(crosses), not(verb("watch")))
	across = all(answered, crosses, not(verb("watch")))
	// ownReads are those of one server in the eight seconds, acrossReads those of all servers.
	ownReads    = all(own, reads, there, window)
	acrossReads = all(across, reads, window, resource)
)

// every selects one of n operations.
func every(n int) pick {
	i := 0
	return func(*edit, *history.Operation) bool { i++; return i%n == 1 }
}

// each changes the selected operations.
func (e *edit) each(p pick, change func(*history.Operation)) {
	for i := range e.h.Operations {
		o := &e.h.Operations[i]
		if !p(e, o) {
			continue
		}
		sent, received := *o.Sent, *o.Received
		o.Sent, o.Received = &sent, &received
		change(o)
		e.touched++
	}
}

// hop changes a record of an operation: of the peer if peer, else of the asked server. It reports
// whether there is one.
func (e *edit) hop(o *history.Operation, peer bool, change func(*history.Hop)) bool {
	for _, i := range e.hops[o.ID] {
		if hop := &e.h.Hops[i]; hop.Rerouted == peer && !e.dropped[i] {
			entry := *hop.Entry
			hop.Entry = &entry
			change(hop)
			return true
		}
	}
	return false
}

// drop removes the peer's record of an operation, or that of the asked server.
func (e *edit) drop(o *history.Operation, peer bool) {
	for _, i := range e.hops[o.ID] {
		if e.h.Hops[i].Rerouted == peer {
			e.dropped[i] = true
		}
	}
}

// eachHop changes the records of the selected operations.
func (e *edit) eachHop(p pick, peer bool, change func(*history.Hop)) {
	for i := range e.h.Operations {
		if o := &e.h.Operations[i]; p(e, o) && e.hop(o, peer, change) {
			e.touched++
		}
	}
}

// add adds a record of an operation, like the peer's.
func (e *edit) add(p pick, change func(*history.Hop)) {
	for i := range e.h.Operations {
		o := &e.h.Operations[i]
		if !p(e, o) {
			continue
		}
		for _, j := range e.hops[o.ID] {
			if hop := e.h.Hops[j]; hop.Rerouted {
				entry := *hop.Entry
				hop.Entry = &entry
				change(&hop)
				e.h.Hops = append(e.h.Hops, hop)
				e.touched++
				break
			}
		}
	}
}

// answer is an answer that a server may give instead of the right one.
type answer struct {
	name string
	history.Received
	takes time.Duration // 0: as long as the right one
}

func status(code int, reason string) answer {
	a := answer{name: fmt.Sprint(code), Received: history.Received{
		Status: code, Reason: reason, Message: "altered", Body: history.BodyStatus, Content: history.ContentWhole, MediaType: "",
	}}
	if code == http.StatusNotFound {
		a.name, a.Missing = "404 for the resource", history.MissingResource
		a.Reason, a.Message = "NotFound", "the server could not find the requested resource"
	}
	return a
}

func failure(f history.Failure, takes time.Duration) answer {
	names := map[history.Failure]string{
		history.FailureRefused: "a refused connection", history.FailureReset: "a reset", history.FailureTLS: "a failed handshake",
		history.FailureTimeout: "no answer for 31 s",
	}
	return answer{name: names[f], Received: history.Received{Failure: f, Error: "altered"}, takes: takes}
}

// refusals are answers of a server that refuses a request, and failures of one that gives no
// answer.
var (
	object404 = answer{name: "404 for the object", Received: history.Received{
		Status: 404, Reason: "NotFound", Message: "altered", Body: history.BodyStatus, Content: history.ContentWhole,
		Missing: history.MissingObject,
	}}
	refusals = []answer{
		status(400, "BadRequest"), status(401, "Unauthorized"), status(403, "Forbidden"), status(404, ""), status(405, "MethodNotAllowed"),
		status(406, "NotAcceptable"), status(409, "Conflict"), status(410, "Expired"), status(415, "UnsupportedMediaType"), status(422,
			"Invalid"),
		status(429, "TooManyRequests"), status(500, "InternalError"), status(502, ""), status(503, "ServiceUnavailable"), status(504, "Timeout"),
	}
	failures = []answer{
		failure(history.FailureRefused, 0), failure(history.FailureReset, 0), failure(history.FailureTLS, 0), failure(history.FailureTimeout,
			hangs),
	}
)

// reply gives the selected operations another answer. byPeer: the peer gave it, as both servers
// have recorded; otherwise the asked server did, without asking a peer.
func (e *edit) reply(p pick, a answer, byPeer bool) {
	if a.takes > 0 {
		p = all(p, inTime)
	}
	e.each(p, func(o *history.Operation) {
		*o.Received = a.Received
		if a.takes > 0 {
			o.End = o.Start + a.takes
		}
		change := func(hop *history.Hop) { hop.Status, hop.End = a.Status, max(hop.Start, min(hop.End, o.End)) }
		if byPeer {
			e.hop(o, true, change)
		} else {
			e.drop(o, true)
		}
		if a.Failure != "" {
			e.drop(o, false)
			return
		}
		e.hop(o, false, change)
	})
}

// slow makes the selected answers take a time.
func (e *edit) slow(p pick, takes time.Duration) {
	e.each(all(p, func(e *edit, o *history.Operation) bool { return o.Start+takes < e.h.End.At }), func(o *history.Operation) {
		o.End = max(o.End, o.Start+takes)
		for _, peer := range []bool{false, true} {
			e.hop(o, peer, func(hop *history.Hop) { hop.End = max(hop.End, o.End-time.Millisecond) })
		}
	})
}

// commonest returns the resource that most operations of a kind are about.
func (e *edit) commonest(p pick) history.GVR {
	counts := map[history.GVR]int{}
	for i := range e.h.Operations {
		if o := &e.h.Operations[i]; p(e, o) {
			counts[o.GVR]++
		}
	}
	most := history.GVR{}
	for _, gvr := range slices.SortedFunc(maps.Keys(counts), func(a, b history.GVR) int { return strings.Compare(a.String(), b.String()) }) {
		if counts[gvr] > counts[most] {
			most = gvr
		}
	}
	return most
}

// about selects the requests for one resource.
func about(gvr history.GVR) pick {
	return func(_ *edit, o *history.Operation) bool { return o.GVR == gvr }
}

// document gives the selected discovery answers an altered document.
func (e *edit) document(p pick, change func(history.Document) history.Document) {
	altered := map[string]string{}
	e.each(all(p, func(e *edit, o *history.Operation) bool {
		d, ok := e.h.Documents[o.Document]
		return ok && len(d.Resources) > 2
	}), func(o *history.Operation) {
		hash, ok := altered[o.Document]
		if !ok {
			d := e.h.Documents[o.Document]
			d.Resources = slices.Clone(d.Resources)
			d = change(d)
			hash = d.Hash + "-altered"
			d.Hash = hash
			altered[o.Document] = hash
			e.h.Documents[hash] = d
		}
		o.Document = hash
		if o.ETag != "" {
			o.ETag = `"` + hash + `"`
		}
	})
}

// docs selects answers of discovery that have a document.
func docs(kind string) pick {
	return func(_ *edit, o *history.Operation) bool {
		return o.Verb == kind && o.Document != "" && o.Status == 200 && strings.HasPrefix(o.Path, "/apis")
	}
}
