package invariant

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// key is what a request is about. Beside resources and subresources there are keys for a whole group or version, which
// only have the fields that name it, and the zero key for discovery itself, which every server serves.
type key struct {
	history.GVR
	subresource string
}

// String is how people write it: group/version/resource/subresource.
func (k key) String() string {
	if k.subresource == "" {
		return k.GVR.String()
	}
	return k.GVR.String() + "/" + k.subresource
}

// document is a discovery document, indexed.
type document struct {
	history.Document
	lists map[key]bool
	// readable are the resources that can be asked for without changing anything.
	readable map[key]bool
	// core is true when it lists something of the core group. A document that was put together from /apis only says
	// nothing of the core group, and must not be taken to deny it.
	core bool
}

func newDocument(d history.Document) *document {
	doc := &document{Document: d, lists: map[key]bool{{}: true}, readable: map[key]bool{}}
	for _, r := range d.Resources {
		doc.core = doc.core || r.Group == ""
		doc.lists[key{GVR: history.GVR{Group: r.Group}}] = true
		doc.lists[key{GVR: history.GVR{Group: r.Group, Version: r.Version}}] = true
		doc.lists[key{GVR: r.GVR}] = true
		if len(r.Verbs) == 0 || slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "get" || v == "list" || v == "watch" }) {
			doc.readable[key{GVR: r.GVR}] = true
		}
		for _, s := range r.Subresources {
			doc.lists[key{r.GVR, s.Name}] = true
		}
	}
	return doc
}

// claim is what is known of one server and one key.
type claim uint8

const (
	claimUnknown claim = iota // no ground truth, or it changed during the window asked about
	claimAbsent               // the process was down
	claimNo                   // the server was there and did not serve it
	claimYes                  // the server was up (paused, perhaps) and served it
)

// served is a stretch of one server's life with one document of its own; doc is nil while that is not known.
type served struct {
	span
	doc *document
}

// newServed cuts a timeline where documents change. records are those of the server, in time order. A document of one
// incarnation says nothing of the next: that may be another version.
func newServed(line timeline, records []history.Served, documents map[string]*document) []served {
	var out []served
	for _, s := range line {
		piece := served{span: s}
		if s.phase == phaseDown || s.phase == phaseUnknown {
			out = append(out, piece)
			continue
		}
		for _, r := range records {
			switch doc := documents[r.Document]; {
			case r.Incarnation != s.incarnation || r.At >= s.to:
			case r.At <= s.from:
				piece.doc = doc
			default:
				before := piece
				before.to = r.At
				if before.from < before.to {
					out = append(out, before)
				}
				piece.from, piece.doc = r.At, doc
			}
		}
		out = append(out, piece)
	}
	return out
}

func (s served) claim(k key) claim {
	switch {
	case s.phase == phaseDown:
		return claimAbsent
	case s.doc == nil:
		return claimUnknown
	case s.doc.lists[k]:
		if s.up {
			return claimYes
		}
		return claimUnknown // coming or going: it may answer, or not
	case k.Group == "" && k.Version != "" && !s.doc.core:
		return claimUnknown
	default:
		return claimNo
	}
}

// coverage is a stretch of time over which one server's claim to one key did not change.
type coverage struct {
	window
	claim claim
	// lost is how the process left if, in claimAbsent, the last known document before that served the key.
	lost history.State
}

// resource is a key with every server's claims to it.
type resource struct {
	key
	coverage [][]coverage // by server.index
}

func newResource(k key, servers []*server) *resource {
	r := &resource{key: k, coverage: make([][]coverage, len(servers))}
	for i, s := range servers {
		var line []coverage
		var lastKnown bool
		for _, piece := range s.served {
			c := coverage{window: piece.window, claim: piece.claim(k)}
			if piece.doc != nil {
				lastKnown = piece.doc.lists[k]
			}
			if c.claim == claimAbsent && lastKnown {
				c.lost = piece.left
			}
			if n := len(line) - 1; n >= 0 && line[n].claim == c.claim && line[n].lost == c.lost {
				line[n].to = c.to
				continue
			}
			line = append(line, c)
		}
		r.coverage[i] = line
	}
	return r
}

// during returns the server's claim over the whole of w, and since when it has been so.
func (r *resource) during(s *server, w window) coverage {
	line := r.coverage[s.index]
	i, found := slices.BinarySearchFunc(line, w.from, func(c coverage, t history.Time) int { return cmp.Compare(c.from, t) })
	if !found {
		i--
	}
	if i < 0 || !line[i].holds(w) {
		return coverage{claim: claimUnknown}
	}
	return line[i]
}

// name is what the resource is called, or nothing where there is none.
func (r *resource) name() string {
	if r == nil {
		return ""
	}
	return r.String()
}
