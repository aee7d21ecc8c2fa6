package sim

import (
	"context"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
)

// State is an interesting state that a run can reach.
type State uint8

// The states.
const (
	ReachedProxied       State = iota // a request was answered by a peer
	ReachedFailover                   // a second peer was tried after the first failed
	ReachedRefused                    // a peer said that it does not serve the request
	ReachedMiss                       // a peer answered 404 to the request
	ReachedUnreachable                // every capable peer was tried without success
	ReachedUnresolved                 // the address of no capable peer was known
	ReachedUnknown                    // refused because it is unknown what a live peer serves
	ReachedUnsynced                   // asked before anything was known
	ReachedWatchStalled               // the lease watch had stalled
	ReachedNotRepeatable              // a write that may have been carried out was not repeated
	ReachedEjected                    // a peer was avoided
	ReachedAbsent                     // no server was believed to serve the resource
	ReachedRerouted                   // a forwarded request was served here
	ReachedForged                     // a client sent the header of the hop
	ReachedHalfFetched                // one of a peer's two documents could be fetched, the other not
	ReachedFetchFailed                // neither document could be fetched
	ReachedStaleBelief                // a server sent a request to a peer that does not serve it any more
	ReachedMutualBelief               // two servers each believed that the other serves it
	ReachedStreamBroken               // an answer broke off in the middle
	ReachedWatchBroken                // a watch through a peer broke off
	ReachedWriteProxied               // a write was answered by a peer
	ReachedDiscovery                  // merged discovery was answered
	ReachedExtension                  // a server saw that a custom resource or aggregated API was added or removed
	ReachedRestart                    // a server was started again with the same identity
	ReachedCrash                      // a server ended by itself
	ReachedPaused                     // a request reached a paused process
	states
)

var stateNames = [states]string{
	"proxied", "failover", "refused-by-peer", "missed-at-peer", "all-peers-failed", "address-unknown", "peer-unknown", "unsynced",
	"lease-watch-stalled",
	"write-not-repeated", "peer-avoided", "believed-absent", "served-for-peer", "forged-hop", "half-fetched", "fetch-failed", "stale-belief",
	"mutual-belief", "answer-broken-off", "watch-broken-off", "write-proxied", "merged-discovery", "extension-changed", "restarted", "crashed",
	"met-paused-process",
}

// String is the name of the state in reports.
func (s State) String() string { return stateNames[s] }

// States lists all states.
func States() []State {
	all := make([]State, states)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// Reached is a set of states.
type Reached uint64

func (r *Reached) note(s State) { *r |= 1 << s }

// Has reports whether the state was reached.
func (r Reached) Has(s State) bool { return r&(1<<s) != 0 }

var decided = map[proxy.Reason]State{
	proxy.ReasonUnreachable: ReachedUnreachable, proxy.ReasonUnresolved: ReachedUnresolved, proxy.ReasonUnknown: ReachedUnknown,
	proxy.ReasonUnsynced: ReachedUnsynced, proxy.ReasonNotRepeatable: ReachedNotRepeatable, proxy.ReasonNobody: ReachedAbsent,
	proxy.ReasonRerouted: ReachedRerouted, proxy.ReasonWatchStalled: ReachedWatchStalled,
}

// observer notes what a server's proxy does.
type observer struct{ *server }

func (o observer) Decided(_ context.Context, r proxy.Request, d proxy.Decision, tried int) {
	s := o.s
	s.trace.add(s.loop.Now(), eventDecided, o.index, int(d.Action)<<8|tried, hashString(string(d.Reason))^hashString(string(d.Peer)))
	s.counts.decided(d, tried)
	if state, ok := decided[d.Reason]; ok {
		s.reached.note(state)
	}
	if d.Action == proxy.Forward {
		if tried > 0 {
			s.reached.note(ReachedFailover)
		}
		o.believed(r, s.byID[d.Peer])
	}
}

// believed checks whether a request goes to a peer that does not serve it.
func (o observer) believed(r proxy.Request, peer int) {
	p := o.s.servers[peer]
	if p.phase != running || r.Kind != proxy.KindResource {
		return
	}
	k := resourceKey{r.Resource.Group, r.Resource.Version, r.Resource.Resource, r.Resource.Subresource}
	if _, ok := p.serves(k); ok {
		return
	}
	o.s.reached.note(ReachedStaleBelief)
	if p.on && p.store != nil {
		if d := p.store.Table().Decide(proxy.Request{Kind: r.Kind, Resource: r.Resource}, nil, o.s.wall(),
			func(int) int { return 0 }); d.Action == proxy.Forward && d.Peer == o.id {
			o.s.reached.note(ReachedMutualBelief)
		}
	}
}

func (o observer) Attempted(ctx context.Context, r proxy.Request, a proxy.AttemptResult) {
	s := o.s
	s.trace.add(s.loop.Now(), eventAttempted, o.index, a.Code<<4|int(a.Outcome), hashString(string(a.Peer)))
	s.counts.Attempts++
	switch {
	case a.Answered && a.Code == 404:
		s.reached.note(ReachedMiss)
	case !a.Answered && a.Outcome == proxy.Refused:
		s.reached.note(ReachedRefused)
	}
	if !a.Answered {
		return
	}
	s.reached.note(ReachedProxied)
	o.count(r, s.setup.counts(a.Code))
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok && isWrite(x.op.Verb) && a.Code < 300 {
		s.reached.note(ReachedWriteProxied)
	}
}

// count counts an answer of a peer, as [proxy.Metrics] does.
func (srv *server) count(r proxy.Request, code int) {
	if r.Kind != proxy.KindResource {
		return
	}
	gvr := history.GVR{Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource}
	for i := range srv.rerouted {
		if c := &srv.rerouted[i]; c.code == code && c.gvr == gvr {
			c.count++
			return
		}
	}
	srv.rerouted = append(srv.rerouted, rerouted{gvr, code, 1})
}

// rerouted is what a server has counted of the requests that it passed on.
type rerouted struct {
	gvr         history.GVR
	code, count int
}

// tellCounted records what the server has counted. It is called at the end of a run.
func (srv *server) tellCounted() {
	if srv.phase != running {
		return
	}
	c := history.Counted{Server: srv.name, Incarnation: srv.incarnation, At: srv.s.loop.Now()}
	for _, r := range srv.rerouted {
		c.Rerouted = append(c.Rerouted, history.Rerouted{Code: itoa(r.code), GVR: r.gvr, Count: r.count})
	}
	srv.s.history.Counted = append(srv.s.history.Counted, c)
}

// Ejected makes the server ask the peer at once, as package apiserver does.
func (o observer) Ejected(_ context.Context, peer proxy.ServerID) {
	o.s.reached.note(ReachedEjected)
	o.schedule.Learn(proxy.PeerFailed{ID: peer}, o.s.wall())
	o.s.loop.After(0, o.gate, o.pump)
}

func (o observer) Discovered(_ context.Context, from proxy.DiscoverySource) {
	if from != proxy.DiscoveryNoPeer {
		o.s.reached.note(ReachedDiscovery)
	}
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// noteFetched records the result of fetching from a peer.
func (srv *server) noteFetched(r *proxy.FetchResult) {
	switch core, groups := r.Roots[0].Failed != "", r.Roots[1].Failed != ""; {
	case core && groups:
		srv.s.reached.note(ReachedFetchFailed)
	case core || groups:
		srv.s.reached.note(ReachedHalfFetched)
	}
}

// seen records the answer that a client saw.
func (s *Simulator) seen(op *operation) {
	if op.Status == 200 && op.Failure == "reset" {
		s.reached.note(ReachedStreamBroken)
		if op.Verb == "watch" {
			s.reached.note(ReachedWatchBroken)
		}
	}
}

// Impossible returns the states that no run can reach under a policy, each with the reason.
func Impossible(p proxy.Policy) map[State]string {
	k, r := p.Knowledge, p.Routing
	never := map[State]string{}
	for _, rule := range []struct {
		holds  bool
		reason string
		states []State
	}{
		{!p.Quirks.CrashOnFailedFetch, "a failed fetch does not end a server", []State{ReachedCrash}},
		{k.WaitForPeers, "a server is not ready before it has asked every peer", []State{ReachedUnsynced}},
		{!k.FailClosed, "unknown resources count as absent", []State{ReachedUnknown, ReachedWatchStalled}},
		{k.ForgetOnRestart && k.Extensions == proxy.ExtensionsExact,
			"a server stops serving a built-in resource only by a restart, after which it knows nothing about its peers; extensions are not taken from peers",
			[]State{ReachedMutualBelief}},
		{r.Attempts < 2, "there is one attempt", []State{ReachedFailover}},
		{r.Ejection == 0, "no peer is avoided", []State{ReachedEjected}},
		{!r.RefuseAtHop, "a server that does not serve a forwarded request answers 404", []State{ReachedRefused}},
		{!p.Discovery.Merge, "discovery is not merged", []State{ReachedDiscovery}},
		{k.StorageVersions, "peers are not asked what they serve", []State{ReachedHalfFetched, ReachedFetchFailed, ReachedUnsynced}},
	} {
		if rule.holds {
			for _, s := range rule.states {
				never[s] = rule.reason
			}
		}
	}
	return never
}
