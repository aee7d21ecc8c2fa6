package invariant

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var identityPreserved = Invariant{
	Name:     "IdentityPreserved",
	Grade:    GradeCore,
	Sentence: "A request that is passed on is carried out as the user who sent it, with the same groups, UID and extra fields.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the destination takes the user from the request's headers, " +
		"not from the client certificate of the server that passed it on",
	judge:    judgeIdentityPreserved,
	unknown:  "no server has recorded the user",
	pressure: []pressure{skewed, passedOn},
}

func judgeIdentityPreserved(f *Facts) *tally {
	t := newTally(f)
	passed, lost, compared, upgraded, impersonated := 0, 0, 0, 0, 0
	known := f.knownAttributes()
	users := map[string]bool{}
	for o := range f.identified() {
		if o.forwarded() {
			passed++
			users[o.op.User] = true
			if o.op.Impersonator != "" {
				impersonated++
			}
		}
		r, at := ruleIdentity(o)
		wrong, cause := "", ""
		if r == rulingWrong {
			wrong, cause = "taken for another user", fmt.Sprintf("%s took %s for %s", at.Server, o.op.User, at.User)
		} else {
			all, n, other, peer := known.compare(o.op, o.hops)
			lost += n
			if all > 0 {
				compared++
				if o.op.Client == history.ClientSocket {
					upgraded++
				}
			}
			if other != "" {
				r, wrong, cause = rulingWrong, "seen "+other, fmt.Sprintf("%s saw %s %s", peer, o.op.User, other)
			}
		}
		t.ruleHops(r, o, asUser, wrong, cause, cause)
	}
	if passed == 0 {
		t.doubt("no operation was handled by a second server, so no user had to be passed on")
	}
	t.fact("operations passed on", passed)
	t.fact("of those, with groups, UID and extra fields compared", compared)
	t.fact("of those, upgraded connections", upgraded)
	if impersonated > 0 {
		t.fact("of those, of a user whom the sender impersonated", impersonated)
	}
	if lost > 0 {
		t.fact("passed on without the user's UID, as versions before v1.33 do", lost)
	}
	t.fact("users whose operations were passed on", len(users)) // with a single user, the proxy might send a constant
	return t
}

// ruleIdentity rules on the user names of one operation and returns the hop that is wrong. The hop
// at the asked server counts too, since that server forwards the user whom it authenticated. But
// that hop alone says nothing about the peers. A hop without a user says nothing. If a peer could
// not authenticate the user, the peer did not carry out the request, and AnsweredAlike rules on its
// answer. The sender of a request may impersonate the user: see [impersonator].
func ruleIdentity(o *observation) (ruling, history.Hop) {
	seen, refused := false, false
	for _, h := range o.hops {
		switch {
		case h.Unauthenticated != "" && atPeer(o.op, h):
			refused = true
		case o.op.User == "" || h.User == "" || impersonator(o.op, h):
		case h.User != o.op.User:
			return rulingWrong, h
		default:
			seen = seen || atPeer(o.op, h)
		}
	}
	switch {
	case seen:
		return rulingRight, history.Hop{Entry: &history.Entry{}}
	case o.forwarded() && !refused:
		return rulingUnknown, history.Hop{Entry: &history.Entry{}}
	default:
		return rulingNone, history.Hop{Entry: &history.Entry{}}
	}
}

// impersonator reports whether a hop names the user who sent the operation, and not the user whom
// this sender impersonated, for a good reason: the asked server may pass the impersonation on, and
// a peer that refused the request, or was killed meanwhile, may not have come to the impersonated
// user.
func impersonator(op *history.Operation, h history.Hop) bool {
	return op.Impersonator != "" && h.User == op.Impersonator && (!atPeer(op, h) || !succeeded(h.Status))
}

// attributes are the groups, UIDs and extra fields of one user, as authenticated by the servers
// that the user asked directly. The zero value has none.
type attributes struct{ groups, uids, extras map[string]bool }

func (a *attributes) add(h history.Hop) {
	if a.groups == nil {
		a.groups, a.uids, a.extras = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	a.groups[h.Groups], a.uids[h.UID], a.extras[h.Extra] = true, true, true
}

// userAttributes are the attributes of every user.
type userAttributes map[string]attributes

// knownAttributes collects the attributes of every user from all operations.
func (f *Facts) knownAttributes() userAttributes {
	known := userAttributes{}
	for o := range f.identified() {
		for _, h := range o.hops {
			if h.Groups != "" && h.User == o.op.User && !atPeer(o.op, h) {
				a := known[h.User]
				a.add(h)
				known[h.User] = a
			}
		}
	}
	return known
}

// recordedAtPeer reports whether a peer recorded attributes of the user who sent the operation.
func recordedAtPeer(op *history.Operation, h history.Hop) bool {
	return h.Groups != "" && h.User == op.User && atPeer(op, h)
}

// compare says how a peer's view of the user differs from the asked server's record of the same
// operation, and which peer it is. If the asked server recorded nothing, compare uses the records
// of all asked servers for that user. other is "" if no peer differs. Servers record different
// attributes of one user (v1.30 records less about a certificate), so it is enough to match any of
// them.
//
// all counts the compared hops. lost counts the hops without a UID although the user has one:
// versions before v1.33 do not forward the UID (RemoteRequestHeaderUID), and later versions forward
// it only with --requestheader-uid-headers.
func (k userAttributes) compare(op *history.Operation, hops []history.Hop) (all, lost int, other, peer string) {
	if !slices.ContainsFunc(hops, func(h history.Hop) bool { return recordedAtPeer(op, h) }) {
		return 0, 0, "", ""
	}
	a := k[op.User]
	for _, h := range hops {
		if h.Groups != "" && h.User == op.User && !atPeer(op, h) {
			a = attributes{}
			a.add(h)
			break
		}
	}
	if len(a.groups) == 0 {
		return 0, 0, "", ""
	}
	for _, h := range hops {
		if !recordedAtPeer(op, h) {
			continue
		}
		all++
		switch {
		case !a.groups[h.Groups]:
			return all, lost, "with other groups", h.Server
		case h.UID != "" && !a.uids[h.UID]:
			return all, lost, "with another UID", h.Server
		case !a.extras[h.Extra]:
			return all, lost, "with other extra fields", h.Server
		case !a.uids[h.UID]:
			lost++
		}
	}
	return all, lost, "", ""
}
