package mutants

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim"
)

// knowledge are mutants of what a server learns about its peers, and of what it forgets.
var knowledge = []mutant{
	{
		part: "table", name: "first-document-for-ever",
		wrong: "A server uses only the first discovery document of each peer.",
		plant: func(acted func()) sim.Defects {
			learnt := lives[map[proxy.ServerID]bool]{}
			return sim.Defects{Local: learnt.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
				known := learnt[self]
				return results(events, func(r *proxy.FetchResult) bool {
					if r.Roots[0].Failed != "" || r.Roots[1].Failed != "" {
						return true
					}
					if (*known)[r.ID] {
						acted()
						return false
					}
					if *known == nil {
						*known = map[proxy.ServerID]bool{}
					}
					(*known)[r.ID] = true
					return true
				})
			}}
		},
	},
	{
		part: "table", name: "gone-peer-kept",
		// The first seeds are unlucky: in 19 of the first 20 thousands of seeds the search finds it
		// within 205 schedules, in the first thousand after 372.
		first: 1001,
		wrong: "A server never forgets a peer that has stopped.",
		plant: func(acted func()) sim.Defects {
			return ignoring(acted, func(_ proxy.ServerID, e proxy.Event) bool {
				_, gone := e.(proxy.PeerGone)
				return gone
			})
		},
	},
	{
		part: "table", name: "failed-fetch-is-empty",
		wrong: "A peer whose discovery cannot be fetched counts as serving nothing.",
		plant: func(acted func()) sim.Defects {
			return fetching(func(r *proxy.FetchResult) bool {
				for root := range r.Roots {
					if r.Roots[root].Failed != "" {
						acted()
						r.Roots[root] = proxy.RootResult{}
					}
				}
				return true
			})
		},
	},
	{
		part: "table", name: "half-a-fetch-wipes-the-other-half",
		wrong: "If one of a peer's two documents cannot be fetched, it counts as empty.",
		plant: func(acted func()) sim.Defects {
			return fetching(func(r *proxy.FetchResult) bool {
				core, groups := r.Roots[proxy.RootCore].Failed != "", r.Roots[proxy.RootGroups].Failed != ""
				if core == groups {
					return true
				}
				for root := range r.Roots {
					if r.Roots[root].Failed == "" {
						acted()
						r.Roots[root] = proxy.RootResult{}
					}
				}
				return true
			})
		},
	},
	{
		part: "table", name: "nothing-is-an-empty-list", rare: true,
		wrong:   "A document that breaks off before its first byte counts as empty.",
		changes: []string{"Quirks.EmptyIsDocument=true"},
	},
	{
		part: "table", name: "unknown-is-empty",
		wrong: "A peer whose discovery has not been fetched yet counts as serving nothing.",
		plant: func(acted func()) sim.Defects {
			return sim.Defects{Events: func(_ proxy.ServerID, events []proxy.Event) []proxy.Event {
				var all []proxy.Event
				for _, e := range events {
					all = append(all, e)
					if e, ok := e.(proxy.PeerAppeared); ok {
						acted()
						empty := proxy.FetchResult{ID: e.ID, Incarnation: e.Incarnation}
						all = append(all, proxy.Fetched{Results: []proxy.FetchResult{empty}, At: longAgo})
					}
				}
				return all
			}}
		},
	},
	{
		part: "table", name: "withdrawn-address-stays-away",
		wrong: "If a peer once had no address, its later addresses are ignored.",
		plant: func(acted func()) sim.Defects {
			withdrawn := lives[map[proxy.ServerID]bool]{}
			d := ignoring(acted, func(self proxy.ServerID, e proxy.Event) bool {
				address, ok := e.(proxy.PeerAddress)
				if !ok {
					return false
				}
				gone := withdrawn[self]
				if address.Address == "" {
					if *gone == nil {
						*gone = map[proxy.ServerID]bool{}
					}
					(*gone)[address.ID] = true
				}
				return address.Address != "" && (*gone)[address.ID]
			})
			d.Local = withdrawn.begin
			return d
		},
	},
	{
		part: "table", name: "addresses-mixed-up",
		wrong: "Each peer gets the address of the peer that was announced before it.",
		plant: func(acted func()) sim.Defects {
			last := lives[string]{}
			return sim.Defects{Local: last.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
				return changed(events, func(e proxy.Event) proxy.Event {
					address, ok := e.(proxy.PeerAddress)
					if !ok || address.Address == "" {
						return e
					}
					before := *last[self]
					*last[self] = address.Address
					if before != "" && before != address.Address {
						acted()
						address.Address = before
					}
					return address
				})
			}}
		},
	},
	{
		part: "table", name: "documents-mixed-up",
		wrong: "The document of a peer is stored for the peer that answered after it.",
		plant: func(acted func()) sim.Defects {
			last := lives[*proxy.FetchResult]{}
			return sim.Defects{Local: last.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
				return results(events, func(r *proxy.FetchResult) bool {
					own := *r
					if before := *last[self]; before != nil && before.ID != r.ID {
						acted()
						r.Roots, r.Version = before.Roots, before.Version
					}
					*last[self] = &own
					return true
				})
			}}
		},
	},
	{
		part: "table", name: "own-extensions-unnoticed", rare: true,
		wrong: "A server does not notice new custom resources that it serves itself.",
		plant: func(acted func()) sim.Defects {
			asked := lives[bool]{}
			d := ignoring(acted, func(self proxy.ServerID, e proxy.Event) bool {
				switch e.(type) {
				case proxy.Extensions:
					return true
				case proxy.LocalFetched:
					again := *asked[self]
					*asked[self] = true
					return again
				}
				return false
			})
			d.Local = asked.begin
			return d
		},
	},
	{
		part: "table", name: "old-process-believed", rare: true,
		wrong: "The document of an earlier process counts for the present process of the same identity.",
		plant: func(acted func()) sim.Defects {
			told := lives[map[proxy.ServerID]proxy.Fetched]{}
			return sim.Defects{Local: told.begin, Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
				var all []proxy.Event
				for _, e := range events {
					all = append(all, e)
					switch e := e.(type) {
					case proxy.Fetched:
						for _, r := range e.Results {
							if *told[self] == nil {
								*told[self] = map[proxy.ServerID]proxy.Fetched{}
							}
							(*told[self])[r.ID] = proxy.Fetched{Results: []proxy.FetchResult{r}, At: e.At}
						}
					case proxy.PeerAppeared:
						if old, ok := (*told[self])[e.ID]; ok && old.Results[0].Incarnation != e.Incarnation {
							acted()
							old.Results = slices.Clone(old.Results)
							old.Results[0].Incarnation = e.Incarnation
							all = append(all, old)
						}
					}
				}
				return all
			}}
		},
	},
	{
		part: "table", name: "one-failure-forgets-all", rare: true,
		wrong:   "After one failed fetch, a server forgets everything about that peer.",
		changes: []string{"Knowledge.KeepLastGood=false", "Knowledge.ForgetOnRestart=false"},
	},
}

// longAgo is a time before every run, and not the zero time.
var longAgo = time.Date(2025, time.December, 31, 0, 0, 0, 0, time.UTC)

// changed returns the events after change was called on each of them.
func changed(events []proxy.Event, change func(proxy.Event) proxy.Event) []proxy.Event {
	all := make([]proxy.Event, len(events))
	for i, e := range events {
		all[i] = change(e)
	}
	return all
}

// results changes the answers of peers to fetches. keep may change an answer, and reports whether
// the server receives it. The simulator's own results are not modified.
func results(events []proxy.Event, keep func(*proxy.FetchResult) bool) []proxy.Event {
	return changed(events, func(e proxy.Event) proxy.Event {
		fetched, ok := e.(proxy.Fetched)
		if !ok {
			return e
		}
		var kept []proxy.FetchResult
		for _, r := range fetched.Results {
			if keep(&r) {
				kept = append(kept, r)
			}
		}
		fetched.Results = kept
		return fetched
	})
}

// fetching plants a change of the answers of peers to fetches.
func fetching(keep func(*proxy.FetchResult) bool) sim.Defects {
	return sim.Defects{Events: func(_ proxy.ServerID, events []proxy.Event) []proxy.Event { return results(events, keep) }}
}

// documented plants a change of the documents in the answers of peers.
func documented(change func(discovery.Groups) discovery.Groups) sim.Defects {
	return fetching(func(r *proxy.FetchResult) bool {
		for root := range r.Roots {
			if r.Roots[root].Failed == "" {
				r.Roots[root].Groups = change(r.Roots[root].Groups)
			}
		}
		return true
	})
}

// ignoring plants that servers do not notice some events.
func ignoring(acted func(), ignore func(self proxy.ServerID, e proxy.Event) bool) sim.Defects {
	return sim.Defects{Events: func(self proxy.ServerID, events []proxy.Event) []proxy.Event {
		var kept []proxy.Event
		for _, e := range events {
			if ignore(self, e) {
				acted()
			} else {
				kept = append(kept, e)
			}
		}
		return kept
	}}
}
