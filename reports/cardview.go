package reports

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/skewproof/skewproof/internal/invariant"
)

// mostKinds is how many kinds of violations of one card are listed.
const mostKinds = 24

// cardView is a card of the page.
type cardView struct {
	ID      string
	Label   string
	New     bool
	Decides bool // an invariant that counts is among those violated
	Title   []part
	Tolls   []toll
	First   Seconds
	Last    Seconds
	Servers []string
	// Exhibits are violations in full. Kinds are all kinds of violations; MoreKinds counts those that
	// are not listed.
	Exhibits  []exhibit
	Kinds     []cardItem
	MoreKinds int
}

// exhibit is a violation in full, with its circumstances and its pictures.
type exhibit struct {
	Evidence
	Meanwhile string
	Pictures  []seqView
	Contrast  *differenceView
}

// Swipes reports whether even the narrow picture is wider than a small screen.
func (x exhibit) Swipes() bool {
	const smallScreen = 345
	return x.Pictures[len(x.Pictures)-1].Width > smallScreen
}

// violationsView is the part of the page about all violations.
type violationsView struct {
	Cards []cardView
	// Listed are the defects for which there is no card. Hidden counts kinds of violations that are
	// only in the history.
	Listed []cardView
	Hidden int
}

func newViolations(r RunReport) violationsView {
	var v violationsView
	cards := r.cards()
	for n, c := range cards {
		if n < mostCards {
			v.Cards = append(v.Cards, newCardView(r, c, n))
		} else if len(v.Listed) < mostDefects {
			v.Listed = append(v.Listed, summarized(r, c, n))
		}
	}
	v.Hidden = max(0, len(cards)-mostCards-mostDefects)
	for _, i := range r.Invariants {
		if i.Outcome == invariant.OutcomeFail {
			v.Hidden += max(0, i.Kinds-len(i.Evidence))
		}
	}
	return v
}

// mostDefects is how many defects are listed that have no card.
const mostDefects = 100

func cardID(n int) string { return "violation-" + strconv.Itoa(n+1) }

// summarized is a card without its exhibits.
func summarized(r RunReport, c card, n int) cardView {
	head := c.Items[0]
	v := cardView{ID: cardID(n), Label: head.Label(), New: head.New, Tolls: r.tolls(c), Servers: c.servers()}
	v.First, v.Last = c.span()
	for _, t := range v.Tolls {
		v.Decides = v.Decides || t.Decides
	}
	title := capital(cmp.Or(head.Cause, head.Sentence))
	if head.Known != nil {
		title = fmt.Sprintf("Finding %d: %s", head.Known.Finding, head.Known.Title)
	}
	v.Title = newMentions(r).in(title)
	v.Kinds = c.Items[:min(len(c.Items), mostKinds)]
	v.MoreKinds = len(c.Items) - len(v.Kinds)
	return v
}

func newCardView(r RunReport, c card, n int) cardView {
	v := summarized(r, c, n)
	for m, item := range c.exhibits() {
		x := exhibit{Evidence: item.Evidence, Meanwhile: circumstances(r, item.at(), item.at())}
		if s, ok := newSequence(r, item.Evidence); ok {
			number := fmt.Sprintf("%d-%d", n+1, m+1)
			x.Pictures = []seqView{s.draw(seqWide, number), s.draw(seqNarrow, number)}
		}
		if item.Difference != nil {
			d := newDifference(*item.Difference)
			x.Contrast = &d
		}
		v.Exhibits = append(v.Exhibits, x)
	}
	return v
}

// cardOf finds the card of a kind of violation.
type cardOf map[string]int

func newCardOf(r RunReport) cardOf {
	of := cardOf{}
	for n, c := range r.cards() {
		for _, item := range c.Items {
			of[item.Invariant.Name+" "+strconv.Itoa(item.Index)] = n
		}
	}
	return of
}

// of is the number of the card that has the evidence of that index, and whether there is one.
func (c cardOf) of(name string, index int) (int, bool) {
	n, ok := c[name+" "+strconv.Itoa(index)]
	return n, ok
}

// link returns the link to the card of a kind of violation, or to the list of violations without a
// card.
func (c cardOf) link(name string, index int) string {
	if n, ok := c.of(name, index); ok && n < mostCards {
		return "#" + cardID(n)
	}
	return "#violations"
}
