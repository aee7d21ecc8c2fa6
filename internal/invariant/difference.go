package invariant

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// element is one thing that a discovery document lists: a resource, a subresource of it, or a verb of either.
type element struct {
	key
	verb string
}

func (e element) String() string {
	if e.verb == "" {
		return e.key.String()
	}
	return e.key.String() + " " + e.verb
}

// parent is what e is listed under; a resource is its own.
func (e element) parent() element {
	switch {
	case e.verb != "":
		e.verb = ""
	default:
		e.subresource = ""
	}
	return e
}

// elements lists a document in its order.
func elements(d *document) []element {
	var out []element
	add := func(k key, verbs []string) {
		out = append(out, element{key: k})
		for _, v := range verbs {
			out = append(out, element{k, v})
		}
	}
	for _, r := range d.Resources {
		add(key{GVR: r.GVR}, r.Verbs)
		for _, s := range r.Subresources {
			add(key{r.GVR, s.Name}, s.Verbs)
		}
	}
	return out
}

// listing is the part of a document that the path is about: /api the core group, /apis all others.
func listing(d *document, path string) map[element]bool {
	set := map[element]bool{}
	for _, e := range elements(d) {
		if (e.Group == "") == (path == pathCore) {
			set[e] = true
		}
	}
	return set
}

// The paths of merged discovery.
const (
	pathGroups = "/apis"
	pathCore   = "/api"
)

// lacking returns what a has and b has not. What is listed under something that b lacks altogether is not repeated.
func lacking(a, b map[element]bool) []string {
	var out []string
	for e := range a {
		if b[e] {
			continue
		}
		if p := e.parent(); p != e && (!b[p] || !b[p.parent()]) {
			continue
		}
		out = append(out, e.String())
	}
	slices.Sort(out)
	return out
}

// contrast fills in the lists of a Difference.
func contrast(d Difference, left, right map[element]bool) *Difference {
	onlyLeft, onlyRight := lacking(left, right), lacking(right, left)
	d.OnlyLeftTotal, d.OnlyRightTotal = len(onlyLeft), len(onlyRight)
	d.OnlyLeft = onlyLeft[:min(len(onlyLeft), MaxListed)]
	d.OnlyRight = onlyRight[:min(len(onlyRight), MaxListed)]
	return &d
}

// compareDocuments says how two documents differ; either may be missing from the history.
func compareDocuments(d Difference, left, right *document) *Difference {
	if left == nil || right == nil {
		return &d
	}
	a, b := elements(left), elements(right)
	out := contrast(d, setOf(a), setOf(b))
	out.OrderOnly = left.Hash != right.Hash && !slices.Equal(a, b) && maps.Equal(setOf(a), setOf(b)) && len(a) == len(b)
	return out
}

func setOf(es []element) map[element]bool {
	set := make(map[element]bool, len(es))
	for _, e := range es {
		set[e] = true
	}
	return set
}

// union is what all servers of a truth list together for the path; nil when that is not known.
func (f *Facts) union(t truth, path string) map[element]bool {
	if !t.known {
		return nil
	}
	at := path + " " + t.sum
	if u, ok := f.unions[at]; ok {
		return u
	}
	u := map[element]bool{}
	for _, d := range t.documents {
		if path == pathCore && !d.core {
			u = nil // this document says nothing of the core group
			break
		}
		maps.Copy(u, listing(d, path))
	}
	f.unions[at] = u
	return u
}

// merged reports whether the operation got a merged discovery document, and which.
func (f *Facts) merged(op *history.Operation) (*document, bool) {
	if op.Verb != history.VerbDiscovery || op.Failure != history.FailureNone {
		return nil, false
	}
	// "Not modified" is an answer too: that it is still the document which the client has.
	if op.Status != http.StatusOK && (op.Status != http.StatusNotModified || op.Document == "") {
		return nil, false
	}
	if op.Path != pathGroups && op.Path != pathCore {
		return nil, false
	}
	return f.documents[op.Document], true
}

// unreadable reports whether a server answered as though all were well, or the client were to blame, when it was asked for a merged document as a client
// may, and gave none. What it fails at (5xx) is not meant, nor what is refused before it is routed.
func (f *Facts) unreadable(op *history.Operation) bool {
	if op.Verb != history.VerbDiscovery || op.Failure != history.FailureNone || op.Path != pathGroups && op.Path != pathCore || !routed(op) {
		return false
	}
	switch {
	case op.Status == http.StatusOK:
		return f.documents[op.Document] == nil && op.Message != "" // the message is why it could not be read
	case op.Status == http.StatusNotModified:
		return op.Document == "" && op.Message != ""
	default:
		return op.Status < http.StatusInternalServerError
	}
}

// summary writes a Difference for people.
func summary(d *Difference) string {
	var parts []string
	list := func(who string, names []string, total int) {
		if total > 0 {
			parts = append(parts, "only "+who+" lists "+abridge(names, total))
		}
	}
	list(d.Left, d.OnlyLeft, d.OnlyLeftTotal)
	list(d.Right, d.OnlyRight, d.OnlyRightTotal)
	if d.OrderOnly {
		parts = append(parts, "both list the same in another order")
	}
	return strings.Join(parts, "; ")
}

// abridge names the first three.
func abridge(names []string, total int) string {
	const few = 3
	s := strings.Join(names[:min(few, len(names))], ", ")
	if total > few {
		s += " and " + counted(total-few, "other")
	}
	return s
}
