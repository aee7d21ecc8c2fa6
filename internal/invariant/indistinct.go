package invariant

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// indistinct gives the reasons not to believe the ground truth of the quiet windows in which documents were judged.
// A server that ignores profile=nopeer answers with the merged document: ground truth then is made of what is to be judged
// by it, and every merged document is right by definition. That shows in servers of two minor versions that tell the same.
// Patch releases of one minor version may well serve the same, and so may a server that behaves like another minor version (KEP-4330): it is meant to.
func (f *Facts) indistinct(judged map[*quietWindow]bool) []string {
	var out []string
	for _, q := range f.quiet {
		if !judged[q] {
			continue
		}
		own := f.ownDocuments(q.from)
		for i, a := range own {
			for _, b := range own[i+1:] {
				if a.minor == b.minor || !a.doc.sameResources(b.doc) {
					continue
				}
				doubt := fmt.Sprintf("%s (%s) and %s (%s) say that they serve exactly the same: their nopeer documents cannot be told from merged ones",
					a.server, a.version, b.server, b.version)
				if !slices.Contains(out, doubt) {
					out = append(out, doubt)
				}
			}
		}
	}
	return out
}

// own is what one server says it serves by itself.
type own struct {
	server, version string
	minor           string // that it behaves like, "v1.36"
	doc             *document
}

// ownDocuments are those of the servers that are up, by server name. A server whose version cannot be compared is left out.
func (f *Facts) ownDocuments(at history.Time) []own {
	var out []own
	for _, s := range f.servers {
		if piece := s.servedAt(at); piece.up && piece.doc != nil && semver.IsValid(piece.version) {
			minor := semver.MajorMinor(piece.version)
			if piece.emulates != "" {
				minor = "v" + piece.emulates
			}
			out = append(out, own{s.name, piece.version, minor, piece.doc})
		}
	}
	return out
}

// sameResources compares resources, in any order, and neither verbs nor subresources: of what a server serves itself a
// merged document has the server's own view.
func (d *document) sameResources(other *document) bool {
	return d == other || maps.Equal(d.resources(), other.resources())
}

func (d *document) resources() map[history.GVR]bool {
	set := make(map[history.GVR]bool, len(d.Resources))
	for _, r := range d.Resources {
		set[r.GVR] = true
	}
	return set
}
