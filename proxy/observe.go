package proxy

import (
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Observe returns the table after an event. It returns the receiver itself if the event changes
// nothing.
func (t *Table) Observe(e Event) *Table {
	next := t.observe(e)
	if next != t && next.documents == t.documents && next.Incomplete() != t.Incomplete() {
		next.documents++ // a mark appears or disappears
	}
	return next
}

func (t *Table) observe(e Event) *Table {
	switch e := e.(type) {
	case PeerAppeared:
		return t.appeared(e)
	case PeerGone:
		return t.gone(e)
	case PeerAddress:
		return t.addressed(e)
	case PeerFailed:
		if t.policy.Routing.Ejection == 0 {
			return t
		}
		return t.eject(e.ID, e.At.Add(t.policy.Routing.Ejection))
	case PeerAnswered:
		return t.eject(e.ID, time.Time{})
	case Fetched:
		return t.fetched(e)
	case LocalFetched:
		return t.localFetched(e)
	case Extensions:
		return t.extended(e)
	case StorageVersions:
		next := t.copy()
		next.storage = e.Served
		return next
	case Synced:
		if t.synced {
			return t
		}
		next := t.copy()
		next.synced = true
		return next
	case LeaseWatch:
		if t.watchStalled == e.Stalled {
			return t
		}
		next := t.copy()
		next.watchStalled = e.Stalled
		return next
	case Tick:
		return t.tick(e.At)
	}
	return t
}

// copy returns a table that may be changed before it is returned. Its peers may be changed only
// with [Table.change].
func (t *Table) copy() *Table {
	next := *t
	next.peers = slices.Clone(t.peers)
	return &next
}

// noteTime stores the time of the first event that has a time.
func (t *Table) noteTime(now time.Time) {
	if t.began.IsZero() {
		t.began = now
	}
}

// peer returns a peer that may be changed. It is a new peer if the table has none with this
// identity.
func (t *Table) peer(id ServerID) *peer {
	i, ok := t.find(id)
	if !ok {
		t.peers = slices.Insert(t.peers, i, &peer{id: id})
		return t.peers[i]
	}
	return t.change(i)
}

// change replaces a peer by a copy, which may be changed until the table is returned.
func (t *Table) change(i int) *peer {
	p := *t.peers[i]
	t.peers[i] = &p
	return &p
}

func (t *Table) appeared(e PeerAppeared) *Table {
	if e.ID == t.self {
		return t
	}
	if i, ok := t.find(e.ID); ok && t.peers[i].live && t.peers[i].incarnation == e.Incarnation {
		return t
	}
	next := t.copy()
	p := next.peer(e.ID)
	if p.incarnation != e.Incarnation && t.policy.Knowledge.ForgetOnRestart {
		// The new process may be another version. It is unknown which of the old process's
		// resources it serves.
		for root := range roots {
			p.before[root] = p.shown(root)
		}
		p.learnt = [roots]document{}
		p.version = ""
		p.ejected = time.Time{}
	}
	p.live, p.incarnation = true, e.Incarnation
	next.forgetRetired()
	return next
}

func (t *Table) gone(e PeerGone) *Table {
	i, ok := t.find(e.ID)
	if !ok {
		return t
	}
	next := t.copy()
	if !t.policy.Knowledge.KeepLastGood { // without KeepLastGood, the peer's documents stay until the next round of fetches
		next.change(i).live = false
		return next
	}
	if next.peers[i].contributes() {
		next.documents++
	}
	next.peers = slices.Delete(next.peers, i, i+1)
	next.forgetRetired()
	return next
}

func (t *Table) addressed(e PeerAddress) *Table {
	i, ok := t.find(e.ID)
	if e.ID == t.self || ok && t.peers[i].address == e.Address && t.peers[i].direct == e.Direct || !ok && e.Address == "" {
		return t
	}
	next := t.copy()
	p := next.peer(e.ID)
	p.address, p.direct = e.Address, e.Direct
	p.ejected = time.Time{} // the failure was at another address
	return next
}

// eject makes the server avoid a peer until that time. The zero time ends an ejection.
func (t *Table) eject(id ServerID, until time.Time) *Table {
	i, ok := t.find(id)
	if !ok || until.IsZero() && t.peers[i].ejected.IsZero() {
		return t
	}
	next := t.copy()
	next.change(i).ejected = until
	return next
}

// fetched applies the answers of peers. Without KeepLastGood, they replace all earlier knowledge.
func (t *Table) fetched(e Fetched) *Table {
	if t.policy.Knowledge.KeepLastGood && !slices.ContainsFunc(e.Results, t.isNews) {
		return t
	}
	next := t.copy()
	next.noteTime(e.At)
	changed := false
	if !t.policy.Knowledge.KeepLastGood {
		changed = next.forgetLearnt()
	}
	for _, result := range e.Results {
		changed = next.learn(result, e.At, t) || changed
	}
	next.forgetRetired()
	if changed {
		next.bumpUnlessAlone()
	}
	return next
}

// isNews reports whether an answer is about a known peer and is not just the same failure again.
func (t *Table) isNews(r FetchResult) bool {
	i, ok := t.find(r.ID)
	if !ok {
		return false
	}
	for root, answer := range r.Roots {
		if answer.Failed == "" || answer.Failed != t.peers[i].learnt[root].failed {
			return true
		}
	}
	return r.Version != "" && r.Version != t.peers[i].version
}

// forgetLearnt drops every document. It also drops every peer that is not live and has no address.
func (t *Table) forgetLearnt() (changed bool) {
	for i := range t.peers {
		changed = changed || t.peers[i].contributes()
		p := t.change(i)
		p.learnt, p.before, p.native = [roots]document{}, [roots]document{}, nil
	}
	t.peers = slices.DeleteFunc(t.peers, func(p *peer) bool { return !p.live && p.address == "" })
	return changed
}

// learn applies the answer of one peer and reports whether a merged document may change. before is
// the table before anything was forgotten. If it has the very same document, that document's index
// is used again.
func (t *Table) learn(result FetchResult, at time.Time, before *Table) (changed bool) {
	if result.ID == t.self {
		return false
	}
	i, ok := t.find(result.ID)
	switch {
	case t.policy.Knowledge.KeepLastGood && !ok:
		return false // the peer left after it was asked
	case t.policy.Knowledge.ForgetOnRestart && ok && t.peers[i].incarnation != result.Incarnation:
		return false // the peer has restarted since it was asked
	}
	p := t.peer(result.ID)
	if result.Version != "" {
		changed = changed || p.version != result.Version
		p.version = result.Version
	}
	for root, answer := range result.Roots {
		if answer.Failed != "" {
			p.learnt[root].failed = answer.Failed
			if t.policy.Quirks.CrashOnFailedFetch && t.crashed == "" {
				t.crashed = fmt.Sprintf("fetching %s of %s failed (%s), and the document that did not come was used", Root(root).Path(),
					result.ID, answer.Failed)
			}
			continue
		}
		groups := answer.Groups
		if t.policy.Knowledge.Extensions == ExtensionsCutOut {
			groups = t.extensions.cutOut(groups)
		}
		if old := p.learnt[root]; old.known() && discovery.Same(old.groups, groups) {
			p.learnt[root].at, p.learnt[root].failed = at, ""
			p.learnt[root].forgetEarlier()
			// Whether a grace hides something depends on the document's age.
			changed = changed || t.extensions.retiring()
			continue
		}
		if Root(root) == RootGroups && !p.learnt[root].known() {
			p.native = nil // it was about the previous process
		}
		now := document{groups: groups, index: before.indexOf(Root(root), groups), at: at, since: at}
		now.follow(&p.learnt[root])
		p.learnt[root] = now
		p.before[root] = document{}
		changed = true
	}
	return changed
}

// indexOf returns the index of a document, which may be that of another server with the very same
// value.
func (t *Table) indexOf(root Root, groups discovery.Groups) *discovery.Index {
	if discovery.Same(t.local[root].groups, groups) && t.localKnown {
		return t.local[root].index
	}
	for _, p := range t.peers {
		if d := p.learnt[root]; d.known() && discovery.Same(d.groups, groups) {
			return d.index
		}
	}
	return discovery.NewIndex(groups)
}

func (t *Table) localFetched(e LocalFetched) *Table {
	next := t.copy()
	next.noteTime(e.At)
	next.routeByInterval(e.At)
	changed := !t.localKnown || t.version != e.Version
	for root, groups := range e.Roots {
		if next.local[root].known() && discovery.Same(next.local[root].groups, groups) {
			next.local[root].at = e.At
			next.local[root].forgetEarlier()
			continue
		}
		now := document{groups: groups, index: discovery.NewIndex(groups), at: e.At, since: e.At}
		now.follow(&next.local[root])
		next.local[root] = now
		changed = true
	}
	next.localKnown, next.version = true, e.Version
	if changed {
		next.documents++
	}
	return next
}

// tickerSlack is how late an answer may come and still count as the answer of a LocalInterval.
const tickerSlack = time.Second

// routeByInterval keeps, under LocalByInterval, the index that routing used in the last interval.
func (t *Table) routeByInterval(now time.Time) {
	interval := t.policy.Fetching.LocalInterval
	if !t.policy.Quirks.LocalByInterval || interval <= 0 || !t.localKnown || now.Before(t.routedUntil) {
		return
	}
	rounds := now.Sub(t.began) / interval
	if rounds > 0 && now.Sub(t.began.Add(rounds*interval)) < tickerSlack {
		t.routedUntil = time.Time{}
		return
	}
	for root, d := range t.local {
		t.routed[root] = d.index
	}
	t.routedUntil = t.began.Add((rounds + 1) * interval)
}
