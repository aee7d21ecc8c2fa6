package invariant

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

// firsthand is what servers that users asked themselves took these for: groups, UIDs and what else is known of them. The zero value knows nobody.
type firsthand map[string]portrait

type portrait struct{ groups, uids, extras map[string]bool }

// firsthand collects it from all operations: a sidecar that passes a request on tells no more than the user's name, and the kube-apiserver behind it
// tells the rest of what that user asks for elsewhere.
func (f *Facts) firsthand() firsthand {
	known := firsthand{}
	for o, hops := range f.accounted() {
		for _, h := range hops {
			if h.Groups == "" || h.User != o.op.User || elsewhere(o.op, h) {
				continue
			}
			p, ok := known[h.User]
			if !ok {
				p = portrait{map[string]bool{}, map[string]bool{}, map[string]bool{}}
				known[h.User] = p
			}
			p.groups[h.Groups], p.uids[h.UID], p.extras[h.Extra] = true, true, true
		}
	}
	return known
}

// unlike says which server, to which the operation was passed on, took its user for one of that name with other groups, another UID or something else
// about it: other than the asked server told, or if that tells nothing, than any that the user asked. other is "" if none did. Not every server takes
// users for quite the same (v1.30 notes less about a certificate), so that it may be like any.
//
// lost counts accounts without a UID of users that have one. Versions before v1.33 do not hand it on (RemoteRequestHeaderUID), and later ones only
// with --requestheader-uid-headers.
func (k firsthand) unlike(op *history.Operation, hops []history.Hop) (lost int, other string) {
	p := k[op.User]
	for _, h := range hops {
		if h.Groups != "" && h.User == op.User && !elsewhere(op, h) {
			p = portrait{map[string]bool{h.Groups: true}, map[string]bool{h.UID: true}, map[string]bool{h.Extra: true}}
			break
		}
	}
	if len(p.groups) == 0 {
		return 0, ""
	}
	for _, h := range hops {
		if h.Groups == "" || h.User != op.User || !elsewhere(op, h) {
			continue
		}
		switch {
		case !p.groups[h.Groups]:
			return lost, fmt.Sprintf("%s took %s for one of other groups", h.Server, op.User)
		case h.UID != "" && !p.uids[h.UID]:
			return lost, fmt.Sprintf("%s took %s for one of another UID", h.Server, op.User)
		case !p.extras[h.Extra]:
			return lost, fmt.Sprintf("%s was told other extra fields of %s", h.Server, op.User)
		case !p.uids[h.UID]:
			lost++
		}
	}
	return lost, ""
}
