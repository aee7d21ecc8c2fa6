package reports

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// sequence is the course of one violation: who asked whom, when, and what was answered.
type sequence struct {
	Lanes  []seqLane
	Events []seqEvent
	// Omitted counts participants and events for which the picture has no room.
	Omitted int
}

// seqLane is a participant: the client, a server, or etcd.
type seqLane struct {
	Name  string
	Notes []string // what a reader must know about it, such as "serving since 17.1 s"
}

// seqEvent goes from one lane to another, or stays on one lane.
type seqEvent struct {
	At       Seconds
	From, To int
	Kind     seqKind
	Label    string
}

type seqKind string

// The kinds are also classes of the style sheet.
const (
	seqAsk     seqKind = "ask"     // a request, or a hop
	seqAnswer  seqKind = "answer"  // its answer
	seqWrong   seqKind = "wrong"   // the answer that an invariant judged wrong, or the harm that came of it
	seqBlocked seqKind = "blocked" // a fault was in the way
	seqUnused  seqKind = "unused"  // nothing was in the way, and no request used it
	seqState   seqKind = "state"   // an object in etcd, or a process
)

// These bound the size of a picture.
const (
	mostSeqLanes  = 6
	mostSeqEvents = 24
)

// newSequence draws the requests of the evidence. ok is false if the evidence has none.
func newSequence(r RunReport, e Evidence) (s sequence, ok bool) {
	if len(e.Requests) == 0 {
		return sequence{}, false
	}
	s.Lanes = []seqLane{{Name: sender(e)}}
	for _, q := range e.Requests {
		s.lane(r, e, q.Server)
	}
	for _, c := range e.Candidates {
		s.lane(r, e, c.Server)
	}
	for _, h := range e.Hops {
		s.lane(r, e, h.Server)
	}
	requests := slices.Clone(e.Requests)
	slices.SortStableFunc(requests, func(a, b Request) int { return cmp.Compare(a.StartSeconds, b.StartSeconds) })
	for _, q := range requests {
		s.request(e, q)
	}
	s.objects(e, requests)
	if more := len(s.Events) - mostSeqEvents; more > 0 {
		s.Omitted += more
		s.Events = slices.Delete(s.Events, mostSeqEvents-1, len(s.Events)-1) // the last answer stays
	}
	return s, true
}

// sender is the name of the sender's lane: the name of a controller, and otherwise "client".
func sender(e Evidence) string {
	user := e.Requests[0].User
	if len(e.Objects) == 0 || user == "" {
		return "client"
	}
	return user[strings.LastIndex(user, ":")+1:]
}

// lane adds the lane of a server, if there is none yet and there is room.
func (s *sequence) lane(r RunReport, e Evidence, server string) {
	if s.find(server) >= 0 {
		return
	}
	if len(s.Lanes) == mostSeqLanes {
		s.Omitted++
		return
	}
	l := seqLane{Name: server}
	at := e.Requests[0].StartSeconds
	version := r.versionAt(server, at)
	if n := slices.IndexFunc(e.Candidates, func(c Candidate) bool { return c.Server == server }); n >= 0 {
		version = cmp.Or(e.Candidates[n].Version, version)
		l.Notes = append(l.Notes, "serving since "+clock(e.Candidates[n].SinceSeconds))
	}
	if version != "" {
		l.Notes = append([]string{version}, l.Notes...)
	}
	if server == e.Asked && len(l.Notes) < 2 {
		l.Notes = append(l.Notes, "asked")
	}
	s.Lanes = append(s.Lanes, l)
}

// find is the lane of a server, or -1.
func (s *sequence) find(server string) int {
	n := slices.IndexFunc(s.Lanes[1:], func(l seqLane) bool { return l.Name == server })
	if n < 0 {
		return -1
	}
	return n + 1
}

// versionAt is the version that the server ran at that time, or "".
func (r RunReport) versionAt(server string, at Seconds) string {
	for _, l := range r.Timeline.Lanes {
		if l.Server != server {
			continue
		}
		for _, b := range slices.Backward(l.States) {
			if b.StartSeconds <= at {
				return b.Version
			}
		}
	}
	return ""
}

func (s *sequence) add(at Seconds, from, to int, kind seqKind, label string) {
	if from < 0 || to < 0 {
		s.Omitted++
		return
	}
	s.Events = append(s.Events, seqEvent{at, from, to, kind, label})
}

// request adds one request with its hops, the servers that it did not reach, and its answer.
func (s *sequence) request(e Evidence, q Request) {
	asked, shown := s.find(q.Server), q.ID == e.Requests[0].ID
	act := len(e.Objects) > 0 && len(e.Requests) > 1 && !shown // what a misled controller did
	kind := seqAsk
	if act {
		kind = seqWrong
	}
	s.add(q.StartSeconds, 0, asked, kind, q.Verb+" "+shortPath(q.Path))
	reached := s.hops(e, q)
	for _, c := range e.Candidates {
		if c.Server == q.Server || !shown || slices.Contains(reached, c.Server) {
			continue
		}
		switch recorded := slices.ContainsFunc(e.Hops, func(h Hop) bool { return h.Request == q.ID }); {
		case !c.Reachable:
			s.add(q.StartSeconds, asked, s.find(c.Server), seqBlocked, cmp.Or(c.Obstacle, "out of reach"))
		case recorded:
			s.add(q.StartSeconds, asked, s.find(c.Server), seqUnused, "could be reached, was not asked")
		}
	}
	kind = seqAnswer
	if shown && (len(e.Objects) == 0 || len(e.Requests) > 1) {
		kind = seqWrong
	}
	s.add(q.StartSeconds+q.DurationSeconds, asked, 0, kind, q.shortAnswer(e))
}

// hops adds the hops of a request and their answers, in time order. It returns the servers to which
// they led.
func (s *sequence) hops(e Evidence, q Request) (reached []string) {
	var before []Hop
	var answers []seqEvent
	for _, h := range e.Hops {
		if h.Request != q.ID {
			continue
		}
		if !h.Rerouted && h.Server == q.Server {
			before = append(before, h)
			continue
		}
		from := q.Server
		for _, b := range before { // the last of those that contain it made it
			if b.Server != h.Server && b.StartSeconds <= h.StartSeconds && b.StartSeconds+b.DurationSeconds >= h.StartSeconds+h.DurationSeconds {
				from = b.Server
			}
		}
		before, reached = append(before, h), append(reached, h.Server)
		s.add(h.StartSeconds, s.find(from), s.find(h.Server), seqAsk, "passed on")
		if from, to := s.find(h.Server), s.find(from); from >= 0 && to >= 0 {
			answers = append(answers, seqEvent{h.StartSeconds + h.DurationSeconds, from, to, seqAnswer, h.shortAnswer()})
		}
	}
	slices.Reverse(answers) // of those that end together, the inner one ends first
	slices.SortStableFunc(answers, func(a, b seqEvent) int { return cmp.Compare(a.At, b.At) })
	s.Events = append(s.Events, answers...)
	return reached
}

// objects adds what etcd held, among the requests. What happened after the last request is its
// consequence.
func (s *sequence) objects(e Evidence, requests []Request) {
	if len(e.Objects) == 0 {
		return
	}
	if len(s.Lanes) == mostSeqLanes {
		s.Omitted++
		return
	}
	etcd := len(s.Lanes)
	s.Lanes = append(s.Lanes, seqLane{Name: "etcd"})
	last := requests[len(requests)-1]
	for _, o := range e.Objects {
		event := seqEvent{At: o.AtSeconds, From: etcd, To: etcd, Kind: seqState, Label: o.Title() + ": " + o.Fate()}
		if o.Gone || o.Deleting {
			event.Kind = seqWrong
		}
		if server := s.find(last.Server); server >= 0 && o.AtSeconds >= last.StartSeconds {
			event.From = server
		}
		s.Events = append(s.Events, event)
	}
	slices.SortStableFunc(s.Events, func(a, b seqEvent) int { return cmp.Compare(a.At, b.At) })
}

// shortPath removes from a path the parts that the reader does not need.
func shortPath(path string) string {
	before, query, _ := strings.Cut(path, "?")
	if values, err := url.ParseQuery(query); err == nil && values.Has("dryRun") {
		before += "?dryRun"
	}
	return before
}

// shortAnswer is the answer in a few words: "404 resource", "no answer (timeout)".
func (q Request) shortAnswer(e Evidence) string {
	s := "no answer"
	switch {
	case q.Status != 0 && q.Failure != history.FailureNone:
		s = fmt.Sprintf("%d, broken off (%s)", q.Status, q.Failure)
	case q.Status != 0:
		s = strconv.Itoa(q.Status)
		s = strings.TrimSpace(s + " " + strings.TrimPrefix(cmp.Or(q.Reason, q.Message), s+" "))
	case q.Failure != history.FailureNone:
		s += " (" + string(q.Failure) + ")"
	}
	if d := e.Difference; d != nil && q.ID == e.Requests[0].ID {
		return s + ", " + brief(*d)
	}
	return s
}

func (h Hop) shortAnswer() string {
	s := "answered"
	if h.Status != 0 {
		s = strconv.Itoa(h.Status)
	}
	if h.Unauthenticated != "" {
		s += " " + h.Unauthenticated
	}
	return s
}

// Tell describes the picture in words, for readers who do not see it.
func (s sequence) Tell() string {
	var parts []string
	for _, e := range s.Events {
		from, to := s.Lanes[e.From].Name, s.Lanes[e.To].Name
		switch e.Kind {
		case seqState:
			parts = append(parts, fmt.Sprintf("%s, %s: %s", moment(e.At), to, e.Label))
		case seqBlocked:
			parts = append(parts, fmt.Sprintf("%s did not get to %s (%s)", from, to, e.Label))
		case seqUnused:
			parts = append(parts, fmt.Sprintf("%s %s", to, e.Label))
		default:
			parts = append(parts, fmt.Sprintf("%s, %s to %s: %s", moment(e.At), from, to, e.Label))
		}
	}
	return strings.Join(parts, "; ") + "."
}
