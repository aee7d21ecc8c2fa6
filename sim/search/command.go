package search

import (
	"strconv"

	"github.com/skewproof/skewproof/internal/shell"
)

// Command is the command line that runs the search again, wherever its defaults move to.
func (c *Campaign) Command() string {
	s := c.Spec
	words := []string{"skewproof", "explore"}
	if c.Method == MethodAll {
		words = []string{"skewproof", "exhaust"}
	}
	words = append(words, "--policy", s.Policy)
	for _, change := range s.Changes {
		words = append(words, "--change", change)
	}
	words = append(words, "--from", s.From, "--to", s.To, "--servers", strconv.Itoa(s.Servers), "--resources", strconv.Itoa(s.Resources))
	switch {
	case c.Method == MethodAll:
		words = append(words, "--events", strconv.Itoa(c.events()))
	default:
		words = append(words, "--requests", strconv.Itoa(s.requests()), "--first", strconv.FormatUint(c.FirstSeed, 10))
		n := c.Wanted
		if n == 0 {
			n = c.Schedules
		}
		words = append(words, "--seeds", strconv.FormatUint(n, 10))
	}
	if c.Of > len(c.Shards) {
		words = append(words, "--shard", strconv.Itoa(c.Shards[0].Index)+"/"+strconv.Itoa(c.Of))
	}
	if c.Strict {
		words = append(words, "--strict")
	}
	return shell.Line(words...)
}

// requests is how many a generated case has.
func (s Spec) requests() int {
	if s.Requests == 0 {
		return DefaultRequests
	}
	return s.Requests
}
