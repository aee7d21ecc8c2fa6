package invariant

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// element is one entry of a discovery document: a resource, a subresource, or a verb of either.
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

// parent is the element under which e is listed. The parent of a resource is the resource itself.
func (e element) parent() element {
	if e.verb != "" {
		e.verb = ""
	} else {
		e.subresource = ""
	}
	return e
}

// elements returns the entries of a document in the order of the document.
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

// elementSet returns the elements of a document for which keep is true.
func elementSet(d *document, keep func(element) bool) map[element]bool {
	set := map[element]bool{}
	for _, e := range elements(d) {
		if keep(e) {
			set[e] = true
		}
	}
	return set
}

func everything(element) bool { return true }

// The paths of merged discovery.
const (
	pathGroups = "/apis"
	pathCore   = "/api"
)

// listing is the part of a document that belongs to the path: the core group at /api, all others at
// /apis.
func listing(d *document, path string) map[element]bool {
	return elementSet(d, func(e element) bool { return (e.Group == "") == (path == pathCore) })
}

// lacking returns the elements that a has and b lacks. It leaves out an element whose parent b
// lacks too.
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

// onlyIn returns the elements that a has and b lacks, in any order.
func onlyIn(a, b map[element]bool) (out []element) {
	for e := range a {
		if !b[e] {
			out = append(out, e)
		}
	}
	return out
}

// contrast fills in the lists of d.
func contrast(d Difference, left, right map[element]bool) *Difference {
	onlyLeft, onlyRight := lacking(left, right), lacking(right, left)
	d.OnlyLeftTotal, d.OnlyRightTotal = len(onlyLeft), len(onlyRight)
	d.OnlyLeft = onlyLeft[:min(len(onlyLeft), MaxListed)]
	d.OnlyRight = onlyRight[:min(len(onlyRight), MaxListed)]
	return &d
}

// comparison says how two documents differ.
type comparison struct {
	lists  Difference // names no server
	differ []element  // which only one of them lists, in any order
}

// compared compares two documents. Thousands of responses can hold the same two.
func (f *Facts) compared(left, right *document) *comparison {
	pair := [2]*document{left, right}
	if c, ok := f.comparisons[pair]; ok {
		return c
	}
	a, b := elements(left), elements(right)
	inA, inB := elementSet(left, everything), elementSet(right, everything)
	c := &comparison{lists: *contrast(Difference{}, inA, inB)}
	c.lists.OrderOnly = left.Hash != right.Hash && !slices.Equal(a, b) && maps.Equal(inA, inB) && len(a) == len(b)
	c.differ = append(onlyIn(inA, inB), onlyIn(inB, inA)...)
	f.comparisons[pair] = c
	return c
}

// compareDocuments completes d. A document is nil if the history does not hold it.
func (f *Facts) compareDocuments(d Difference, left, right *document) *Difference {
	if left == nil || right == nil {
		return &d
	}
	c := f.compared(left, right).lists
	d.OnlyLeft, d.OnlyRight, d.OnlyLeftTotal, d.OnlyRightTotal, d.OrderOnly = c.OnlyLeft, c.OnlyRight, c.OnlyLeftTotal, c.OnlyRightTotal, c.OrderOnly
	return &d
}

// summary writes d for people.
func (d *Difference) summary() string {
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

// abridge names the first three and counts the others.
func abridge(names []string, total int) string {
	const few = 3
	s := strings.Join(names[:min(few, len(names))], ", ")
	if total > few {
		s += " and " + counted(total-few, "other")
	}
	return s
}

// union is what all servers of a truth list together at the path. It is nil if that is unknown.
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
			u = nil // this document says nothing about the core group
			break
		}
		maps.Copy(u, listing(d, path))
	}
	f.unions[at] = u
	return u
}

// asksForMerged reports whether the operation asks for a merged discovery document and got a
// complete response.
func asksForMerged(op *history.Operation) bool {
	return op.Verb == history.VerbDiscovery && op.Failure == history.FailureNone && (op.Path == pathGroups || op.Path == pathCore)
}

// merged returns the merged discovery document that the operation got, or nil if the history does
// not have that document. ok is false if the operation got no document. A 304 confirms the document
// that the client has.
func (f *Facts) merged(op *history.Operation) (doc *document, ok bool) {
	if !asksForMerged(op) || op.Status != http.StatusOK && (op.Status != http.StatusNotModified || op.Document == "") {
		return nil, false
	}
	return f.documents[op.Document], true
}

// unreadable reports whether a server answered a valid request for a merged document with neither
// that document nor a failure (5xx).
func (f *Facts) unreadable(op *history.Operation) bool {
	if !asksForMerged(op) || !routed(op) {
		return false
	}
	switch op.Status {
	case http.StatusOK:
		return f.unparsed(op)
	case http.StatusNotModified:
		return op.Document == "" && op.Message != ""
	default:
		return op.Status < http.StatusInternalServerError
	}
}

// unparsed reports whether the response could not be parsed as a document; Message says why.
func (f *Facts) unparsed(op *history.Operation) bool {
	return op.Status == http.StatusOK && f.documents[op.Document] == nil && op.Message != ""
}

// At /api, each server may have its own subresources. The reason is KEP-4020 (Summary, note 1): it
// plans no merged discovery of the core group, because that group will get no new resources, only
// new subresources. Elsewhere KEP-4020 treats /api like /apis (Discovery Merging), and upstream's
// servers merge both. So everything else at /api must be as at /apis.

// alike reports whether two responses at a path are the same, as far as KEP-4020 demands it.
func (f *Facts) alike(path string, a, b representation) bool {
	return a == b || path == pathCore && a.etag != b.etag && f.onlySubresourcesDiffer(a.hash, b.hash)
}

func (f *Facts) onlySubresourcesDiffer(a, b string) bool {
	left, right := f.documents[a], f.documents[b]
	if left == nil || right == nil || a == b {
		return false
	}
	d := f.compared(left, right).lists
	resources := func(e element) bool { return e.subresource == "" }
	inLeft, inRight := elementSet(left, resources), elementSet(right, resources)
	return d.OnlyLeftTotal+d.OnlyRightTotal > 0 && len(lacking(inLeft, inRight))+len(lacking(inRight, inLeft)) == 0
}

// onlyForeignSubresources reports whether all missing elements are subresources that the server
// itself, with document own, does not serve.
func onlyForeignSubresources(missing []element, own *document) bool {
	return own != nil && !slices.ContainsFunc(missing, func(e element) bool { return e.subresource == "" || own.lists[e.key] })
}
