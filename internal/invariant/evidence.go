package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// show makes the evidence of one operation, which was sent in situation s. It has the request, the
// asked server, and the servers that could have served the request.
func (f *Facts) show(o *observation, s situation, complaint string) Evidence {
	e := Evidence{
		GVR: o.op.GVR, Subresource: o.op.Subresource,
		Operations: []history.Operation{*o.op}, Hops: o.hops, Candidates: f.candidates(o, s),
	}
	e.Sentence = fmt.Sprintf("%s was asked at %s: %s. It %s%s.",
		o.op.Server, clock(o.op.Start), request(o.op), complaint, describe(e.Candidates, o.op.Server))
	return e
}

// size says how hard an operation is to explain. Active faults count most, then the servers that
// handled it, then a verb other than get and list.
func (f *Facts) size(o *observation) int {
	size := 10 * min(len(o.hops), 9)
	for _, fault := range f.faultList {
		if (window{fault.Start, fault.End}).overlaps(o.window) {
			size += 100
		}
	}
	if o.op.Verb != "get" && o.op.Verb != "list" {
		size++
	}
	return size
}

// request writes what was asked, for people.
func request(op *history.Operation) string {
	what := key{op.GVR, op.Subresource}.String()
	switch {
	case what == "":
		return op.Verb + " " + op.Path
	case op.Path == "":
		return op.Verb + " " + what
	default:
		return op.Verb + " " + what + " (" + op.Path + ")"
	}
}

// answer writes the response, for people.
func answer(op *history.Operation) string {
	took := clock(op.End - op.Start)
	switch {
	case op.Status == 0:
		return fmt.Sprintf("gave no answer in %s (%s)", took, cmp.Or(string(op.Failure), "no reason recorded"))
	case op.Failure != history.FailureNone:
		return fmt.Sprintf("answered %d after %s and did not finish (%s)", op.Status, took, op.Failure)
	case op.Message != "":
		return fmt.Sprintf("answered %d (%q) after %s", op.Status, abridged(op.Message), took)
	default:
		return fmt.Sprintf("answered %d after %s", op.Status, took)
	}
}

// abridged cuts a message to the length of a line, because a server may send a message of any
// length.
func abridged(message string) string {
	const most = 120
	runes := []rune(message)
	if len(runes) <= most {
		return message
	}
	return string(runes[:most-1]) + "…"
}

// clock writes a time of the run for people, to the millisecond.
func clock(t history.Time) string { return t.Round(time.Millisecond).String() }

// candidates are the servers that could have served the operation, including the asked one.
func (f *Facts) candidates(o *observation, s situation) []Candidate {
	capable := slices.Clone(s.capable)
	if o.resource != nil && s.local == claimYes {
		capable = append(capable, peer{o.asked, s.localSince})
		slices.SortFunc(capable, func(a, b peer) int { return cmp.Compare(a.server.index, b.server.index) })
	}
	var out []Candidate
	for _, p := range capable {
		c := Candidate{Server: p.server.name, Version: p.server.line.at(o.op.Start).version, Since: max(p.since, 0), Reachable: true}
		if p.server != o.asked {
			r, obstacle := f.reach(o.op.Server, p.server.name, f.untilBound(o))
			c.Reachable, c.Obstacle = r == reachOpen, obstacle
			c.Draining = f.drains(p.server.name, o.window)
		}
		out = append(out, c)
	}
	return out
}

// describe says which servers could have served the operation. If the asked server could, the
// others do not matter.
func describe(cs []Candidate, asked string) string {
	if i := slices.IndexFunc(cs, func(c Candidate) bool { return c.Server == asked }); i >= 0 {
		cs = cs[i : i+1]
	}
	var parts []string
	for _, c := range cs {
		who := c.Server
		if c.Version != "" {
			who += " (" + c.Version + ")"
		}
		switch {
		case c.Server == asked:
			parts = append(parts, who+" itself has served it since "+clock(c.Since))
		case c.Reachable && c.Draining:
			parts = append(parts, who+" has served it since "+clock(c.Since)+", also while it was stopping, and could be reached")
		case c.Reachable:
			parts = append(parts, who+" has served it since "+clock(c.Since)+" and could be reached")
		default:
			parts = append(parts, who+" has served it since "+clock(c.Since)+" but was not fully reachable: "+c.Obstacle)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", though " + strings.Join(parts, ", and ")
}

// reachability says in few words which servers could have served the operation in situation s, and
// whether the asked server could reach them.
func (f *Facts) reachability(o *observation, s situation) string {
	var all, open []string
	for _, c := range f.candidates(o, s) {
		if c.Server == o.op.Server {
			return "though the server itself serves it"
		}
		all = append(all, c.Server)
		if c.Reachable {
			open = append(open, c.Server)
		}
	}
	switch {
	case len(open) > 0:
		return "though " + strings.Join(open, ", ") + " could be reached"
	case len(all) == 0:
		return ""
	default:
		return "though " + strings.Join(all, ", ") + " served it, out of reach"
	}
}
