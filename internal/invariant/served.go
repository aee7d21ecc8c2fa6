package invariant

import (
	"slices"
	"sort"

	"github.com/skewproof/skewproof/internal/history"
)

// key names the subject of a request: a resource, a subresource, or a whole group or version. A
// whole group or version sets only the fields that name it. The zero key is discovery itself, which
// every server serves.
type key struct {
	history.GVR
	subresource string
}

// String is "group/version/resource/subresource".
func (k key) String() string {
	if k.subresource == "" {
		return k.GVR.String()
	}
	return k.GVR.String() + "/" + k.subresource
}

// describes reports whether the key is a whole group or version. Its document is at /apis/GROUP or
// /apis/GROUP/VERSION.
func (k key) describes() bool { return k.Resource == "" && k.GVR != history.GVR{} }

// document is an indexed discovery document.
type document struct {
	history.Document
	lists map[key]bool
	// readable are the resources that can be read.
	readable map[key]bool
	// core is true if the document lists any resource of the core group. A document made from /apis
	// alone says nothing about the core group.
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

// claim says whether one server serves one key, as far as it is known.
type claim uint8

const (
	claimUnknown claim = iota // unknown, or changed within the window
	claimAbsent               // the process was down
	claimNo                   // the process was not down, and the server did not serve it
	claimListed               // as claimNo, but the server listed it: see [Facts.shadowed]
	claimYes                  // the server was up (ready, paused or draining) and served it
)

// served is a time in which one server was in one phase and served one document.
type served struct {
	span
	content
	// around is set for a process that is starting. It holds the server's documents before and
	// after the start.
	around content
}

// content is what is known about the resources that a server served itself.
type content struct {
	doc *document // nil if unknown
	// before and after are set while the server may have served either of them. doc is nil then.
	before, after *document
}

func (c content) changing() bool { return c.before != nil && c.after != nil }

// change is a change of the known content.
type change struct {
	at history.Time
	content
}

// changesOf returns the changes of one incarnation. The document of one incarnation says nothing
// about the next incarnation, which may be of another version.
func changesOf(incarnation int, records []history.Served, documents map[string]*document) []change {
	var out []change
	for _, r := range records {
		if r.Incarnation != incarnation {
			continue
		}
		doc := documents[r.Document]
		if n := len(out); n > 0 && r.Confirmed > 0 && out[n-1].doc != doc {
			// The run saw the previous document at that document's own At, whatever Confirmed says.
			if from := max(r.Confirmed, out[n-1].at); from < r.At {
				out = append(out, change{from, content{before: out[n-1].doc, after: doc}})
			}
		}
		out = append(out, change{r.At, content{doc: doc}})
	}
	return out
}

// newServed splits a timeline at the times at which documents change. records are the server's
// records, in time order.
func newServed(line timeline, records []history.Served, documents map[string]*document) []served {
	var out []served
	for _, s := range line {
		piece := served{span: s}
		if s.phase == phaseDown || s.phase == phaseUnknown {
			out = append(out, piece)
			continue
		}
		for _, c := range changesOf(s.incarnation, records, documents) {
			switch {
			case c.at >= s.to:
			case c.at <= s.from:
				piece.content = c.content
			default:
				before := piece
				before.to = c.at
				if before.from < before.to {
					out = append(out, before)
				}
				piece.from, piece.content = c.at, c.content
			}
		}
		out = append(out, piece)
	}
	return fillAround(out)
}

// fillAround sets served.around.
func fillAround(line []served) []served {
	var before *document
	for i := range line {
		s := &line[i]
		if s.doc != nil {
			before = s.doc
		}
		if s.phase != phaseStarting || s.doc != nil || before == nil {
			continue
		}
		for _, next := range line[i:] {
			if next.incarnation != s.incarnation {
				break
			}
			if next.doc != nil {
				s.around = content{before: before, after: next.doc}
				break
			}
		}
	}
	return line
}

// documents returns the first piece of each known document of each process. Later pieces of the
// same document say no more about it: a server that stops does not learn anything.
func (s *server) documents() []served {
	var out []served
	for i, piece := range s.served {
		if piece.doc != nil && (i == 0 || s.served[i-1].doc != piece.doc || s.served[i-1].incarnation != piece.incarnation) {
			out = append(out, piece)
		}
	}
	return out
}

// servedIndex is the index in s.served of the piece that contains t.
func (s *server) servedIndex(t history.Time) int {
	return max(sort.Search(len(s.served), func(i int) bool { return s.served[i].from > t })-1, 0)
}

func (s *server) servedAt(t history.Time) served { return s.served[s.servedIndex(t)] }

func (s served) claim(k key) claim {
	if s.phase == phaseDown {
		return claimAbsent
	}
	c := s.content.claim(k)
	if c == claimYes && !s.up {
		return claimUnknown // the server is starting, or stopping and not seen to serve, so it may answer or not
	}
	return c
}

// surelyLacks reports whether the server cannot have served the resource in w, even while its
// process was starting: the server did not serve the resource before or after the start.
func (s *server) surelyLacks(k key, w window) bool {
	for i := s.servedIndex(w.from); i < len(s.served) && s.served[i].overlaps(w); i++ {
		piece := s.served[i]
		if c := piece.claim(k); c != claimAbsent && c != claimNo && (!piece.around.changing() || piece.around.claim(k) != claimNo) {
			return false
		}
	}
	return true
}

// claim is claimYes, claimNo or claimUnknown. While a server changes from one document to another,
// it is known only what both documents say.
func (c content) claim(k key) claim {
	if c.changing() {
		if was := (content{doc: c.before}).claim(k); was == (content{doc: c.after}).claim(k) {
			return was
		}
		return claimUnknown
	}
	switch {
	case c.doc == nil:
		return claimUnknown
	case c.doc.lists[k]:
		return claimYes
	case k.Group == "" && k.Version != "" && !c.doc.core:
		return claimUnknown
	default:
		return claimNo
	}
}

// coverage is a time in which one server's claim to one key did not change.
type coverage struct {
	window
	claim claim
	// lost is set if the claim is claimAbsent and the last known document lists the key. It says
	// how the process ended.
	lost history.State
}

// resource is a key with the claims of every server to it.
type resource struct {
	key
	coverage [][]coverage // by server.index
}

func (f *Facts) newResource(k key) *resource {
	r := &resource{key: k, coverage: make([][]coverage, len(f.servers))}
	for i, s := range f.servers {
		var line []coverage
		var lastKnown bool
		for _, piece := range s.served {
			c := coverage{window: piece.window, claim: piece.claim(k)}
			if c.claim == claimYes && f.shadowed(s, piece, k) {
				c.claim = claimListed
				if f.outlasts(s, piece, k.groupVersion()) {
					c.claim = claimUnknown // nobody could know it at that time
				}
			}
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

// during returns the server's claim over all of w, and the time since which it has not changed.
func (r *resource) during(s *server, w window) coverage {
	line := r.coverage[s.index]
	next := sort.Search(len(line), func(i int) bool { return line[i].from > w.from })
	if next == 0 || !line[next-1].holds(w) {
		return coverage{claim: claimUnknown}
	}
	return line[next-1]
}

// name is the key of the resource for people, or "" if r is nil.
func (r *resource) name() string {
	if r == nil {
		return ""
	}
	return r.String()
}
