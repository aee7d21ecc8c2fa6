package invariant

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/skewproof/skewproof/internal/history"
)

var listsAgree = Invariant{
	Name:     "ListsAgree",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "While no object is created or deleted, a list has the same number of objects from every apiserver, whole or page by page.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it; Kubernetes API concepts, retrieving large results " +
		"sets in chunks",
	judge:    judgeListsAgree,
	unknown:  "objects were created or deleted meanwhile",
	pressure: []pressure{skewed, lists},
}

// completeList is a list that the server answered to its end.
type completeList struct {
	*observation
	paged bool
}

// judgeListsAgree compares lists by label: only the clients of the run create objects with such
// labels.
func judgeListsAgree(f *Facts) *tally {
	t := newTimedTally(f)
	writes := f.populationChanges()
	var order []string
	lists := map[string][]completeList{}
	for _, o := range f.observations {
		what, paged, ok := listByLabel(o.op)
		if !ok || !o.ready {
			continue
		}
		// All pages show the state at the time of the request for the first page. That request was
		// sent less than Staleness before the last one.
		w := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
		before, still := changesBefore(writes[groupResource{o.op.GVR.Group, o.op.GVR.Resource}], w)
		if !still {
			t.rule(o, rulingUnknown)
			continue
		}
		what = fmt.Sprintf("%d %s", before, what)
		if lists[what] == nil {
			order = append(order, what)
		}
		lists[what] = append(lists[what], completeList{o, paged})
	}
	longest, pages, passedOn := 0, 0, 0
	for _, what := range order {
		usual := usualLength(lists[what])
		for _, l := range lists[what] {
			longest = max(longest, l.op.Items)
			if l.paged {
				pages++
			}
			if l.skewed() {
				passedOn++
			}
			if l.op.Items == usual {
				t.rule(l.observation, rulingRight)
				continue
			}
			t.rule(l.observation, rulingWrong)
			const wrong = "a list of another length"
			t.violate(l.observation, *l.situation, wrong, wrong,
				fmt.Sprintf("listed %d objects, when most lists had %d and none was created or deleted", l.op.Items, usual))
		}
	}
	t.fact("objects in the longest list", longest)
	t.fact("of the lists in pages", pages)
	t.fact("of the lists passed on", passedOn)
	return t
}

// listByLabel reports whether the operation is a list by label that the server answered to its end.
// what says what the operation lists.
func listByLabel(op *history.Operation) (what string, paged, ok bool) {
	if op.Verb != "list" || op.Status != http.StatusOK || op.Failure != history.FailureNone || op.More {
		return "", false, false
	}
	u, err := url.ParseRequestURI(op.Path)
	if err != nil || !u.Query().Has("labelSelector") {
		return "", false, false
	}
	q := u.Query()
	paged = q.Has("continue")
	q.Del("limit")
	q.Del("continue")
	return u.Path + "?" + q.Encode(), paged, true
}

// usualLength is the most frequent length. If several are equally frequent, it is the first.
func usualLength(lists []completeList) int {
	count := map[int]int{}
	for _, l := range lists {
		count[l.op.Items]++
	}
	usual := lists[0].op.Items
	for _, l := range lists {
		if count[l.op.Items] > count[usual] {
			usual = l.op.Items
		}
	}
	return usual
}

// groupResource is a resource in all its versions. All versions have the same objects.
type groupResource struct{ group, resource string }

// populationChanges are the times in which objects of a resource may have been created or deleted.
// If a write got no answer, it is unknown how long the write was under way.
func (f *Facts) populationChanges() map[groupResource][]window {
	changes := map[groupResource][]window{}
	for _, o := range f.observations {
		op := o.op
		refused := op.Status >= http.StatusBadRequest && op.Status < http.StatusInternalServerError
		if !writes(op) || op.Verb == "update" || op.Subresource != "" || refused || dryRun(op) {
			continue
		}
		w := o.window
		if op.Status == 0 || op.Status >= http.StatusInternalServerError {
			w.to = later(w.to, f.bounds.Unavailable)
		}
		of := groupResource{op.GVR.Group, op.GVR.Resource}
		changes[of] = append(changes[of], w)
	}
	return changes
}

// changesBefore returns how many changes ended before w. still is false if a change happened in w.
func changesBefore(changes []window, w window) (before int, still bool) {
	for _, c := range changes {
		switch {
		case c.to < w.from:
			before++
		case c.from <= w.to:
			return 0, false
		}
	}
	return before, true
}
