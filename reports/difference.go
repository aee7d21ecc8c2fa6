package reports

import (
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// brief says in a few words how the left document differs from the right one.
func brief(d invariant.Difference) string {
	var parts []string
	if d.OnlyRightTotal > 0 {
		parts = append(parts, "lacks "+grouped(d.OnlyRightTotal))
	}
	if d.OnlyLeftTotal > 0 {
		parts = append(parts, "lists "+grouped(d.OnlyLeftTotal)+" too many")
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case d.OrderOnly:
		return "in another order"
	case d.LeftHash == d.RightHash && d.LeftETag != d.RightETag:
		return "with another ETag"
	default:
		return "with other bytes"
	}
}

// differenceView is a difference in the order in which a reader asks: what is missing, what is too
// much, and only then what identifies the documents.
type differenceView struct {
	invariant.Difference
	// Missing is in the right document only, Excess is in the left one only.
	Missing, Excess nameList
	Identities      []identity
}

// nameList are names, of which there may be more.
type nameList struct {
	Names []string
	Total int
}

// More is how many names are not listed.
func (l nameList) More() int { return max(0, l.Total-len(l.Names)) }

// identity is a hash or an ETag of both documents.
type identity struct{ Kind, Left, Right string }

func newDifference(d invariant.Difference) differenceView {
	v := differenceView{Difference: d, Missing: nameList{d.OnlyRight, d.OnlyRightTotal}, Excess: nameList{d.OnlyLeft, d.OnlyLeftTotal}}
	for _, i := range []identity{{"ETag", d.LeftETag, d.RightETag}, {"hash", d.LeftHash, d.RightHash}} {
		if i.Left != "" || i.Right != "" {
			i.Left, i.Right = shortHash(i.Left), shortHash(i.Right)
			v.Identities = append(v.Identities, i)
		}
	}
	return v
}

// shortHash shortens a hash or an ETag, so that it still differs from others. "" becomes "none".
func shortHash(s string) string {
	if s == "" {
		return "none"
	}
	s = strings.TrimPrefix(strings.Trim(s, `"`), "sha256:")
	if r := []rune(s); len(r) > 13 {
		return fmt.Sprintf("%s…", string(r[:12]))
	}
	return s
}
