package invariant

import (
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// ownReads holds when a process first answered a read with 200.
type ownReads map[ownRead]history.Time

// ownRead is a read of one user at one process. A process that serves equal reads itself answers
// them alike, unless objects or rights have changed meanwhile.
type ownRead struct {
	process
	user, impersonator, verb, path, accept, client string
}

// ownReadOf returns the read that an operation is, if the asked server surely serves it itself.
func (f *Facts) ownReadOf(o *observation) (is ownRead, ok bool) {
	op := o.op
	switch op.Verb {
	case "get", "list", history.VerbTable, history.VerbDiscovery:
	default:
		return is, false
	}
	by := process{op.Server, o.asked.line.at(op.Start).incarnation}
	return ownRead{by, op.User, op.Impersonator, op.Verb, op.Path, op.Accept, op.Client},
		o.ready && o.resource != nil && o.local == claimYes && op.Failure == history.FailureNone
}

func (f *Facts) ownReads() ownReads {
	all := ownReads{}
	for _, o := range f.observations {
		if is, ok := f.ownReadOf(o); ok && o.op.Status == http.StatusOK {
			if _, seen := all[is]; !seen {
				all[is] = o.op.Start
			}
		}
	}
	return all
}

// refusesOwn reports whether the asked server gave a read that it serves itself another answer than
// 200, although its process had answered the same read with 200, or did so later and had been ready
// for Staleness. Nodes may not read what is no longer theirs, crowds are throttled, objects are
// deleted and resource versions expire: then the other answer is right.
func (f *Facts) refusesOwn(o *observation, reads ownReads) bool {
	op := o.op
	is, ok := f.ownReadOf(o)
	if !ok {
		return false
	}
	switch op.Status {
	case http.StatusOK, http.StatusNotModified:
		return false
	case http.StatusNotFound:
		if op.Missing != history.MissingObject || op.Name != "" {
			return false // NoFalseNotFound rules on resources
		}
	case http.StatusGone:
		if namesVersion(op) {
			return false
		}
	case http.StatusTooManyRequests:
		if len(f.crowds) > 0 {
			return false
		}
	}
	first, answered := reads[is]
	ours := o.resource.key == (key{}) || builtIn(op.GVR.Group)
	return answered && (first < op.Start || op.Start >= later(o.readySince, f.bounds.Staleness)) && ours &&
		!strings.HasPrefix(op.User, nodePrefix) && !f.ofNamesake(o)
}
