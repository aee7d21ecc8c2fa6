package reports

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// sentence ends s with a full stop unless s already ends with punctuation.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// capital makes s begin with a capital letter, unless s begins with a name, because the case of a
// name has a meaning.
func capital(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if len(word) < 2 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// conjunction returns "a", "a and b" or "a, b and c".
func conjunction(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return grouped(n) + " times"
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// alsoCounted continues a list of counts: ", 3 failed"; "" for none.
func alsoCounted(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, what)
}

// grouped writes 18234 as "18,234".
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// sign is the sign of an outcome, for readers who do not see colours.
func sign(o invariant.Outcome) string {
	switch o {
	case invariant.OutcomePass:
		return "✓"
	case invariant.OutcomeFail:
		return "✗"
	case invariant.OutcomeKnown:
		return "≈"
	default:
		return "?"
	}
}

// Answer describes the response: status, reason and message, or why there is none.
func (q Request) Answer() string {
	parts := []string{}
	switch {
	case q.Status != 0 && q.Reason != "":
		parts = append(parts, strconv.Itoa(q.Status)+" "+q.Reason)
	case q.Status != 0:
		parts = append(parts, strings.TrimSpace(strconv.Itoa(q.Status)+" "+http.StatusText(q.Status)))
	case q.Failure != "":
		parts = append(parts, "no response ("+string(q.Failure)+")")
	default:
		parts = append(parts, "no response")
	}
	if q.Status != 0 && q.Failure != "" {
		parts = append(parts, "the response broke off ("+string(q.Failure)+")")
	}
	for _, s := range []string{q.Message, q.Error} {
		if s != "" {
			parts = append(parts, strings.TrimSpace(s))
		}
	}
	return strings.Join(parts, ": ") + " after " + lasting(q.DurationSeconds)
}

// Explain says since when a candidate served the resource, and why it could not be reached.
func (e Evidence) Explain(c Candidate) string {
	s := strings.TrimSpace(c.Server+" "+c.Version) + ", serving it since " + clock(c.SinceSeconds)
	switch {
	case c.Server == e.Asked:
		return s + ": it is the server that was asked"
	case c.Obstacle != "":
		return s + ": " + c.Obstacle
	case c.Reachable:
		return s + ": nothing that the run did kept " + cmp.Or(e.Asked, "the server that was asked") + " from reaching it"
	default:
		return s + ": it could not be reached"
	}
}

// Omitted is how many resources the evidence does not name.
func (e Evidence) Omitted() int { return max(0, e.ResourcesTotal-len(e.Resources)) }

// Account says how the server got the request and what it answered.
func (h Hop) Account() string {
	s := "from the client"
	if h.Rerouted {
		s = "from a peer"
	}
	if h.Status != 0 {
		s += ", answered " + strconv.Itoa(h.Status)
	}
	if h.Unauthenticated != "" {
		s += " (" + h.Unauthenticated + ")"
	}
	return s + " after " + lasting(h.DurationSeconds)
}

// Account lists the effects of the fault.
func (e FaultEvidence) Account() string {
	var parts []string
	for _, p := range []struct {
		n    int
		noun string
		end  string
	}{
		{e.RefusedConnections, "connection", "refused"},
		{e.CutConnections, "connection", "cut"},
		{e.AffectedConnections, "connection", "affected"},
		{e.Requests, "request", "in its window"},
	} {
		if p.n > 0 {
			parts = append(parts, counted(p.n, p.noun)+" "+p.end)
		}
	}
	if e.EffectsSeen > 0 {
		parts = append(parts, "its effect seen in the server's lease")
	}
	if e.BytesUp+e.BytesDown > 0 {
		parts = append(parts, fmt.Sprintf("%s bytes up, %s down", grouped(int(e.BytesUp)), grouped(int(e.BytesDown))))
	}
	return strings.Join(parts, ", ")
}
