package reports

import (
	"fmt"
	"slices"
	"strings"
)

// Removal is the cause of a violation, found by experiment: the changes of the policy that remove
// it. The same schedule, and schedules near it with other times and other choices, were run again
// with the changes.
type Removal struct {
	// To is the name of the policy that the changes are taken from.
	To string `json:"to"`
	// Sets are sets of changes, "Knowledge.KeepLastGood=true", with which no schedule shows the
	// violation. With any change of a set left out, some schedule shows it again. They all have the
	// same size, and there is more than one if several are enough. There is none if the violation
	// stays even with all changes at once, and if Unknown is set.
	Sets [][]string `json:"sets,omitempty"`
	// Smallest is true if every smaller set was tried.
	Smallest bool `json:"smallest,omitempty"`
	// Schedules is how many schedules were run with each set. Shown is how many of them show the
	// violation without any change.
	Schedules int `json:"schedules"`
	Shown     int `json:"shown"`
	// Unknown says why the search for a set ended without an answer. It is empty if it did not.
	Unknown string `json:"unknown,omitempty"`
}

// Key tells removals apart: it is equal for those with the same sets. It is "" for nil, of which
// nothing is known.
func (r *Removal) Key() string {
	switch {
	case r == nil, r.Unknown != "":
		return ""
	case len(r.Sets) == 0:
		return "none"
	}
	var sets []string
	for _, s := range r.Sets {
		sets = append(sets, strings.Join(s, " and "))
	}
	return strings.Join(sets, ", or ")
}

// String says in a sentence what removes the violation.
func (r *Removal) String() string {
	switch {
	case r == nil:
		return "It was not tried which switches of the policy remove this."
	case r.Unknown != "":
		return "It is unknown which switches of the policy remove this: " + r.Unknown + "."
	case len(r.Sets) == 0:
		return fmt.Sprintf("No switch of the policy removes this: it stays with all of them as in %s, so its cause is in the servers behind the proxy or in what the switches do not cover.", r.To)
	case !r.Smallest:
		return fmt.Sprintf("Removed by %s; a smaller set may do.", r.Key())
	}
	return "Removed by " + r.Key() + "."
}

// Check refuses a removal that contradicts itself.
func (r *Removal) Check() error {
	switch {
	case r == nil:
		return nil
	case r.Shown > r.Schedules || r.Shown < 0:
		return fmt.Errorf("a cause was shown by %d of %d schedules", r.Shown, r.Schedules)
	case r.Unknown != "" && len(r.Sets) > 0:
		return fmt.Errorf("a cause is both unknown and %s", strings.Join(r.Sets[0], ", "))
	case slices.ContainsFunc(r.Sets, func(s []string) bool { return len(s) == 0 || len(s) != len(r.Sets[0]) }):
		return fmt.Errorf("the sets of changes of a cause are of different sizes")
	}
	return nil
}
