package invariant

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/skewproof/skewproof/internal/history"
)

// Target is the state of the server to which a request was passed on: whether it served the
// resource according to its own documents, and what kept it from answering. An empty Target means
// that the request was not passed on, or that the history does not say.
type Target string

// These are all targets.
const (
	TargetNone       Target = ""
	TargetServes     Target = "serves it"
	TargetOutOfReach Target = "serves it, out of reach"       // a fault was on the link to it, or its process was down
	TargetNoEtcd     Target = "serves it, without etcd"       // its link to etcd was faulty, and it answered 500
	TargetRestarted  Target = "served it before it restarted" // an earlier process of the target served it
	TargetDropped    Target = "no longer serves it"           // the same process served it before
	TargetPart       Target = "serves it without the subresource"
	TargetNever      Target = "never served it"
	// TargetUnreadable: it answered 5xx or not at all, and a server whose version skips minor versions
	// may have stored what it cannot read.
	TargetUnreadable Target = "serves it, and cannot read what a much newer server stores"
)

// target is the state of the last server to which the operation was passed on. If it was not passed
// on, it is the state of the asked server, but only for TargetUnreadable.
func (f *Facts) target(o *observation) Target {
	if o.resource == nil || o.resource.key == (key{}) {
		return TargetNone
	}
	if !o.forwarded() {
		if o.local == claimYes && f.cannotRead(o, o.asked) {
			return TargetUnreadable
		}
		return TargetNone
	}
	hop := o.hops[len(o.hops)-1]
	s := f.byName[hop.Server]
	if s == nil || s == o.asked {
		return TargetNone
	}
	then := window{hop.Start, hop.Start}
	switch {
	case o.resource.during(s, then).claim == claimYes:
		return f.servingTarget(o, s)
	case o.op.Subresource != "" && f.resource(key{GVR: o.op.GVR}).during(s, then).claim == claimYes:
		return TargetPart
	default:
		return s.servedBefore(o.resource.key, hop.Start)
	}
}

func (f *Facts) servingTarget(o *observation, s *server) Target {
	if store, _ := f.reach(s.name, etcd, o.window); store != reachOpen && o.op.Status == http.StatusInternalServerError {
		return TargetNoEtcd
	}
	if there, _ := f.reach(o.op.Server, s.name, o.window); there != reachOpen {
		return TargetOutOfReach
	}
	if f.cannotRead(o, s) {
		return TargetUnreadable
	}
	return TargetServes
}

// cannotRead reports whether the operation failed and asks for a resource that another server has
// served, by its end, in a version that s does not know, where the two skip a minor version. What
// that server has stored, s cannot decode. Kubernetes keeps to versions that both know only for
// servers of adjacent minor versions. If the log of s says that it answered something else, the
// failure is not its own.
func (f *Facts) cannotRead(o *observation, s *server) bool {
	mine := s.servedAt(o.op.Start)
	well := func(status int) bool { return status > 0 && status < http.StatusInternalServerError }
	if well(o.op.Status) || mine.doc == nil ||
		slices.ContainsFunc(o.hops, func(h history.Hop) bool { return h.Server == s.name && well(h.Status) }) {
		return false
	}
	for _, other := range f.servers {
		for _, piece := range other.served {
			if piece.from > o.op.End || piece.doc == nil || !SkipsMinor(mine.behaves(), piece.behaves()) {
				continue
			}
			for _, r := range piece.doc.Resources {
				if r.Group == o.op.GVR.Group && r.Resource == o.op.GVR.Resource && !mine.doc.lists[key{GVR: r.GVR}] {
					return true
				}
			}
		}
	}
	return false
}

// SkipsMinor reports whether a version is more than one minor version newer than another one. This
// is more than Kubernetes' version skew policy allows the kube-apiservers of a cluster. It is false
// if a version cannot be read.
func SkipsMinor(older, newer string) bool {
	from, err := version.ParseGeneric(older) // an emulated version has no patch
	if err != nil {
		return false
	}
	to, err := version.ParseGeneric(newer)
	if err != nil {
		return false
	}
	return to.Major() == from.Major() && to.Minor() > from.Minor()+1
}

// servedBefore applies to a server that does not serve a resource at a time. It says which process
// of the server served the resource last.
func (s *server) servedBefore(k key, at history.Time) Target {
	known := false
	now := s.servedAt(at).incarnation
	for i := s.servedIndex(at); i >= 0; i-- {
		piece := s.served[i]
		if piece.doc == nil {
			continue
		}
		known = true
		switch {
		case !piece.doc.lists[k]:
		case piece.incarnation == now:
			return TargetDropped
		default:
			return TargetRestarted
		}
	}
	if !known {
		return TargetNone
	}
	return TargetNever
}

// targetWords describes a target of a signature for people.
func targetWords(t Target) string {
	if t == TargetNone {
		return ""
	}
	return "its target " + string(t)
}
