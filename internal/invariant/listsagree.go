package invariant

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var listsAgree = Invariant{
	Name:     "ListsAgree",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "While nobody creates or deletes any, a list has the same number of objects whichever apiserver is asked, whole or page by page.",
	Source:   "KEP-4020, Goals: a request is handled by an apiserver that can serve it; Kubernetes API concepts, retrieving large results sets in chunks",
	judge:    judgeListsAgree,
	pressure: []pressure{skewed},
}

// complete is a list that was answered to its end.
type complete struct {
	*observation
	paged bool
}

// judgeListsAgree compares lists by label, since nobody but the clients of the run makes objects that have those labels.
func judgeListsAgree(f *Facts) *tally {
	t := f.timely()
	writes := f.populationChanges()
	var order []string
	lists := map[string][]complete{}
	for _, o := range f.observations {
		what, paged, ok := completeList(o.op)
		if !ok || !o.ready {
			continue
		}
		// Pages tell of the moment in which the first of them was asked for, which Staleness before the last is long past.
		stretch, still := undisturbedStretch(writes[groupResource{o.op.GVR.Group, o.op.GVR.Resource}], window{later(o.op.Start, -f.bounds.Staleness), o.op.End})
		if !still {
			t.rule(rulingUnknown)
			continue
		}
		what = fmt.Sprintf("%d %s", stretch, what)
		if lists[what] == nil {
			order = append(order, what)
		}
		lists[what] = append(lists[what], complete{o, paged})
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
				t.rule(rulingRight)
				continue
			}
			t.rule(rulingWrong)
			class, _ := circumstance(f.candidates(l.observation, l.situation), l.op.Server)
			t.violation(signature{l.op.Server, class, "a list of another length"}, l.op.End, l.resource.name(), func() Evidence {
				return f.show(l.observation, l.situation, fmt.Sprintf("listed %d objects, when most lists had %d and none was created or deleted", l.op.Items, usual))
			})
		}
	}
	t.fact("objects in the longest list", longest)
	t.fact("of the lists in pages", pages)
	t.fact("of the lists passed on", passedOn)
	return t
}

// completeList reports whether the operation is a list by label that was answered to its end, and what it is a list of.
func completeList(op *history.Operation) (what string, paged, ok bool) {
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

func usualLength(lists []complete) int {
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

// groupResource is a resource in all its versions: they show the same objects.
type groupResource struct{ group, resource string }

// populationChanges are the times in which objects of a resource may have come or gone. Of a write that got no answer nobody knows how long it was under way.
func (f *Facts) populationChanges() map[groupResource][]window {
	changes := map[groupResource][]window{}
	for _, o := range f.observations {
		op := o.op
		switch op.Verb {
		case "create", "delete", "deletecollection", "patch":
		default:
			continue
		}
		refused := op.Status >= http.StatusBadRequest && op.Status < http.StatusInternalServerError
		if op.Subresource != "" || refused || strings.Contains(op.Path, "dryRun=All") {
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

// undisturbedStretch is how many changes there were before w, and whether there was none in it.
func undisturbedStretch(changes []window, w window) (before int, still bool) {
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
