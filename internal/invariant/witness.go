package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// show is the evidence that one operation gives: what was asked, who was asked, who could have served it. The sentence is
// completed with what was true of those.
func (f *Facts) show(o *observation, s situation, complaint string) Evidence {
	e := Evidence{
		GVR: o.op.GVR, Subresource: o.op.Subresource,
		Operations: []history.Operation{*o.op}, Hops: f.hops[o.op.ID], Candidates: f.candidates(o, s),
	}
	e.Sentence = fmt.Sprintf("%s was asked at %s: %s. It %s%s.", o.op.Server, clock(o.op.Start), request(o.op), complaint, describe(e.Candidates, o.op.Server))
	return e
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

// answer writes what came of it.
func answer(op *history.Operation) string {
	took := op.End - op.Start
	switch {
	case op.Status == 0:
		return fmt.Sprintf("gave no answer in %s (%s)", clock(took), cmp.Or(string(op.Failure), "no reason recorded"))
	case op.Failure != history.FailureNone:
		return fmt.Sprintf("answered %d after %s and did not finish (%s)", op.Status, clock(took), op.Failure)
	case op.Message != "":
		return fmt.Sprintf("answered %d (%q) after %s", op.Status, abridged(op.Message), clock(took))
	default:
		return fmt.Sprintf("answered %d after %s", op.Status, clock(took))
	}
}

// abridged keeps a message, which a server may make as long as it likes, to the length of a line.
func abridged(message string) string {
	const most = 120
	runes := []rune(message)
	if len(runes) <= most {
		return message
	}
	return string(runes[:most-1]) + "…"
}

// candidates are the servers that could have served it, the asked one among them if it could.
func (f *Facts) candidates(o *observation, s situation) []Candidate {
	var out []Candidate
	for _, srv := range f.servers {
		since, capable := history.Time(0), false
		if srv == o.asked {
			since, capable = s.localSince, o.resource != nil && s.local == claimYes
		}
		for _, p := range s.capable {
			if p.server == srv {
				since, capable = p.since, true
			}
		}
		if !capable {
			continue
		}
		c := Candidate{Server: srv.name, Version: srv.line.at(o.op.Start).version, Since: max(since, 0), Reachable: true}
		if srv != o.asked {
			r, obstacle := f.reach(o.op.Server, srv.name, f.patience(o))
			c.Reachable, c.Obstacle = r == reachOpen, obstacle
		}
		out = append(out, c)
	}
	return out
}

// describe says who could have served it. Where the asked server could, the others do not matter.
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
			parts = append(parts, who+" itself serves it since "+clock(c.Since))
		case c.Reachable:
			parts = append(parts, who+" serves it since "+clock(c.Since)+" and could be reached")
		default:
			parts = append(parts, who+" serves it since "+clock(c.Since)+" but was hindered: "+c.Obstacle)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", though " + strings.Join(parts, ", and ")
}

// circumstance says in few words why it is wrong, the same for like violations: who serves it, and could it be reached.
func circumstance(cs []Candidate, asked string) (class, cause string) {
	var all, open []string
	for _, c := range cs {
		if c.Server == asked {
			return asked, "though it serves it itself"
		}
		all = append(all, c.Server)
		if c.Reachable {
			open = append(open, c.Server)
		}
	}
	class = strings.Join(all, ", ")
	if len(open) > 0 {
		return class, "though " + strings.Join(open, ", ") + " could be reached"
	}
	if class == "" {
		return class, ""
	}
	return class, "though " + class + " served it, out of reach"
}
