package scenarios

import (
	"slices"

	"github.com/skewproof/skewproof/internal/fault"
)

// cut takes the way from one server to another away.
func cut(from, to string) fault.Fault { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

// from puts the fault on the way from each of the servers to the one that it names, that one excepted.
func from(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for _, s := range servers {
		if s != f.To {
			f.From = s
			all = append(all, f)
		}
	}
	return all
}

// bothWays adds to each fault the same on the way back.
func bothWays(faults []fault.Fault) []fault.Fault {
	all := slices.Clone(faults)
	for _, f := range faults {
		f.From, f.To = f.To, f.From
		all = append(all, f)
	}
	return all
}

// around puts the fault on the ways between each server and the next, the first coming after the last.
func around(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for i, s := range servers {
		f.From, f.To = s, servers[(i+1)%len(servers)]
		all = append(all, f)
	}
	if len(servers) == 2 {
		return all // there and back again
	}
	return bothWays(all)
}
