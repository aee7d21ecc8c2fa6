package reports

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// mostCards is how many defects the page shows in full. It lists the others by their signatures.
const mostCards = 12

// card is one defect: all violations that one finding explains, or NEW violations of one kind. One
// wrong answer can violate several invariants, and it is still one defect.
type card struct {
	// Items are the kinds of violations, the one to show first.
	Items []cardItem
}

// cardItem is one kind of violation of one invariant. Index is its place in Invariant.Evidence.
type cardItem struct {
	Evidence
	Invariant Invariant
	Index     int
}

// cards groups the evidence of all failed invariants by defect. First come the cards that the
// headline may be about, NEW ones before known ones, and of the known ones those that the fewest
// scenarios show.
func (r RunReport) cards() []card {
	var out []card
	for _, i := range r.Invariants {
		if i.Outcome != invariant.OutcomeFail {
			continue
		}
		for n, e := range i.Evidence {
			item := cardItem{e, i, n}
			at := slices.IndexFunc(out, func(c card) bool { return c.takes(item) })
			if at < 0 {
				at = len(out)
				out = append(out, card{})
			}
			out[at].Items = append(out[at].Items, item)
		}
	}
	for n := range out {
		items := out[n].Items
		slices.SortStableFunc(items, r.first)
	}
	slices.SortStableFunc(out, func(a, b card) int {
		return cmp.Or(r.first(a.Items[0], b.Items[0]), -cmp.Compare(a.Items[0].Count, b.Items[0].Count))
	})
	return out
}

// first orders kinds of violations by how much they tell about the run.
func (r RunReport) first(a, b cardItem) int {
	matters := func(c cardItem) bool { return r.Decides(c.Invariant) || c.Invariant.About }
	return cmp.Or(
		-truth(matters(a), matters(b)),
		cmp.Compare(a.commonness(), b.commonness()),
		-truth(r.Decides(a.Invariant), r.Decides(b.Invariant)),
		-truth(a.Invariant.About, b.Invariant.About),
	)
}

// takes reports whether the item shows the defect of the card.
func (c card) takes(item cardItem) bool {
	head := c.Items[0]
	if item.Known != nil || head.Known != nil {
		return item.Known != nil && head.Known != nil && item.Known.Finding == head.Known.Finding
	}
	return slices.ContainsFunc(c.Items, func(has cardItem) bool { return has.showsAlso(item) })
}

// showsAlso reports whether two kinds of violations that no finding explains are one defect: the
// request and the answer are the same, and only the circumstances differ. If the invariant itself
// distinguishes them, they are two defects, unless both show the same request.
func (c cardItem) showsAlso(item cardItem) bool {
	a, b := c.Signature.Core(), item.Signature.Core()
	wrong := a.Wrong == b.Wrong || c.Invariant.Name != item.Invariant.Name &&
		(a.Wrong == "" || b.Wrong == "" || sameRequest(c.Evidence, item.Evidence))
	a.Invariant, b.Invariant, a.Wrong, b.Wrong, a.Reach, b.Reach = "", "", "", "", "", ""
	return wrong && a == b && a.Mechanism != ""
}

func sameRequest(a, b Evidence) bool {
	return len(a.Requests) > 0 && len(b.Requests) > 0 && a.Requests[0].ID == b.Requests[0].ID
}

// mostExhibits is how many kinds of violations of one card are shown in full.
const mostExhibits = 4

// exhibits are the kinds of violations of the card that look different: one for each part of the
// proxy and each answer. Circumstances make no difference.
func (c card) exhibits() []cardItem {
	type look struct {
		invariant.Mechanism
		answer, wrong string
		objects       bool
	}
	var out []cardItem
	seen := map[look]int{} // the place in out, plus one
	for _, item := range c.Items {
		l := look{Mechanism: item.Signature.Mechanism, answer: item.Signature.Answer, objects: len(item.Objects) > 0}
		if l.Mechanism == "" || len(item.Requests) == 0 && !l.objects { // there is nothing else to tell them apart
			l.wrong = item.Invariant.Name + item.Signature.Wrong
		}
		switch at := seen[l]; {
		case at > 0 && item.Difference != nil && out[at-1].Difference == nil: // it says more
			out[at-1] = item
		case at == 0 && len(out) < mostExhibits:
			out = append(out, item)
			seen[l] = len(out)
		}
	}
	return out
}

// shown returns the evidence that the page shows in full.
func (r *RunReport) shown() []*Evidence {
	var out []*Evidence
	cards := r.cards()
	for _, c := range cards[:min(len(cards), mostCards)] {
		for _, item := range c.exhibits() {
			n := slices.IndexFunc(r.Invariants, func(i Invariant) bool { return i.Name == item.Invariant.Name })
			out = append(out, &r.Invariants[n].Evidence[item.Index])
		}
	}
	return out
}

// toll is how often the defect of a card violated one invariant.
type toll struct {
	Invariant
	Count   int
	Decides bool
}

// tolls say how often the defect violated which invariant. One answer counts in each of them.
func (r RunReport) tolls(c card) []toll {
	var out []toll
	for _, item := range c.Items {
		n := slices.IndexFunc(out, func(t toll) bool { return t.Name == item.Invariant.Name })
		if n < 0 {
			n = len(out)
			out = append(out, toll{Invariant: item.Invariant, Decides: r.Decides(item.Invariant)})
		}
		out[n].Count += item.Count
	}
	return out
}

// span is when the defect was seen.
func (c card) span() (first, last Seconds) {
	first, last = c.Items[0].FirstSeconds, c.Items[0].LastSeconds
	for _, item := range c.Items {
		first, last = min(first, item.FirstSeconds), max(last, item.LastSeconds)
	}
	return first, last
}

// servers are all servers on which the defect was seen, sorted.
func (c card) servers() []string {
	var out []string
	for _, item := range c.Items {
		for _, s := range item.Evidence.servers() {
			out = appendNew(out, s)
		}
	}
	slices.Sort(out)
	return out
}
