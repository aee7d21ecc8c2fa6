package reports

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/shell"
)

// Command is the command line that runs the search again, even if the defaults change later.
func (c *Campaign) Command() string {
	words := []string{"skewproof", "explore"}
	switch s := c.Spec; {
	case c.Method == MethodAll:
		words = append([]string{"skewproof", "exhaust"}, s.flags("--policy")...)
		words = append(words, "--events", strconv.Itoa(c.Events()))
	case c.Real != nil:
		words = append(words, "--backend", "local", "--subject", c.Real.Subject, "--versions", strings.Join(c.Real.Versions, ","),
			"--servers", strconv.Itoa(s.Servers), "--qps", strconv.FormatFloat(c.Real.QPS, 'g', -1, 64))
	default:
		words = append(words, s.flags("--policy")...)
		if s.Requests > 0 {
			words = append(words, "--requests", strconv.Itoa(s.Requests))
		}
	}
	if c.Method != MethodAll {
		words = append(words, "--first", strconv.FormatUint(c.FirstSeed, 10), "--seeds", strconv.FormatUint(cmp.Or(c.Wanted, c.Schedules), 10))
	}
	if c.Strict {
		words = append(words, "--strict")
	}
	if c.Real != nil && c.Real.Controllers {
		words = append(words, "--controllers")
	}
	return shell.Line(words...)
}

// flags are the words of a command line that say what is searched, without the requests. policy is
// the name of the flag for the policy.
func (s SearchSpec) flags(policy string) []string {
	words := []string{policy, s.Policy}
	for _, change := range s.Changes {
		words = append(words, "--change", change)
	}
	if len(s.Versions) > 0 {
		words = append(words, "--versions", strings.Join(s.Versions, ","))
	} else {
		words = append(words, "--from", s.From, "--to", s.To)
	}
	return append(words, "--servers", strconv.Itoa(s.Servers), "--resources", strconv.Itoa(s.Resources))
}

// Events is the largest number of events of a schedule if every schedule is run. It is 0 for random
// schedules.
func (c *Campaign) Events() int {
	if c.Scope == nil {
		return 0
	}
	return c.Scope.Events
}
