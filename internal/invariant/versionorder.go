package invariant

import (
	"fmt"
	"slices"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
)

// versionOrder judges only the order. The order matters because a client that names no version
// takes the first version that discovery lists.
var versionOrder = Invariant{
	Name:    "VersionOrder",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "In steady state, merged discovery lists the versions of a group in the order of their priority, stable before beta " +
		"before alpha and newer before older, so that every apiserver prefers the same version.",
	Source: "Kubernetes API concepts, CustomResourceDefinition versioning, version priority; KEP-4020, Goals: discovery reports the same " +
		"whichever apiserver is asked",
	judge:    judgeVersionOrder,
	pressure: []pressure{mergedDocuments},
}

func judgeVersionOrder(f *Facts) *tally {
	t := newTimedTally(f)
	exempt := f.ordersOfTheirOwn()
	wrong := map[string][]string{} // by document: the groups whose versions are out of order, sorted
	several := 0
	for _, o := range f.observations {
		doc, ok := f.merged(o.op)
		if !ok || doc == nil || o.op.Path != pathGroups || !o.ready || f.steadyAt(o.window) == nil {
			continue // while a version appears or disappears, not all servers know of the change
		}
		versions := versionsOf(doc)
		out, done := wrong[doc.Hash]
		if !done {
			for group, vs := range versions {
				if !exempt[group] && !slices.IsSortedFunc(vs, byPriority) {
					out = append(out, group)
				}
			}
			slices.Sort(out)
			wrong[doc.Hash] = out
		}
		several = max(several, severalVersions(versions))
		if len(out) == 0 {
			t.rule(o, rulingRight)
			continue
		}
		t.rule(o, rulingWrong)
		const what = "versions of a group out of order"
		b := t.breach(o, situation{}, what, what)
		b.Extension = f.extensionOfOrder(o, versions, out)
		t.violation(b, func() Evidence {
			var shown []string
			for _, group := range out {
				shown = append(shown, fmt.Sprintf("%s (%s)", group, strings.Join(versions[group], ", ")))
			}
			return f.show(o, situation{}, "listed the versions of "+abridge(shown, len(shown))+" in another order than that of their priority")
		})
	}
	t.fact("groups of several versions in one document", several)
	if t.verdict.Checked > 0 && several == 0 {
		t.doubt("no merged document listed a group of several versions")
	}
	return t
}

// byPriority is the order in which versions are preferred.
func byPriority(a, b string) int { return -apiversion.CompareKubeAwareVersionStrings(a, b) }

// versionsOf returns the versions of each group in the order in which the document lists them.
func versionsOf(d *document) map[string][]string {
	out := map[string][]string{}
	for _, r := range d.Resources {
		if r.Group != "" && !slices.Contains(out[r.Group], r.Version) {
			out[r.Group] = append(out[r.Group], r.Version)
		}
	}
	return out
}

func severalVersions(of map[string][]string) int {
	n := 0
	for _, versions := range of {
		if len(versions) > 1 {
			n++
		}
	}
	return n
}

// ordersOfTheirOwn returns the groups that some server itself lists in an order other than that of
// priority. An APIService may set any order (versionPriority).
func (f *Facts) ordersOfTheirOwn() map[string]bool {
	out := map[string]bool{}
	for _, s := range f.servers {
		for _, piece := range s.served {
			for _, d := range []*document{piece.doc, piece.before, piece.after} {
				if d == nil {
					continue
				}
				for group, versions := range versionsOf(d) {
					if !slices.IsSortedFunc(versions, byPriority) {
						out[group] = true
					}
				}
			}
		}
	}
	return out
}
