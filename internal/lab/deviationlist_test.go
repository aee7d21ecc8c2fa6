package lab

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// right is the verdict that is right on an altered history.
type right string

const (
	wrong      right = "wrong"       // no finding predicts this answer: a NEW violation
	undecided  right = "not decided" // the record cannot be: the run proves nothing
	acceptable right = "acceptable"  // what was altered is permitted, so no violation comes with it
)

// deviation is a named way to alter a history, with the verdict that is right. The verdict was
// written before the judge was asked.
type deviation struct {
	family, name string
	right        right
	// on names the scenarios whose runs have what is altered; empty: the usual runs.
	on    string
	alter func(*edit)
}

// deviations returns all deviations. Each call returns new ones, because some count.
func deviations() []deviation {
	return slices.Concat(
		ownDeviations(), acrossDeviations(), alikeDeviations(), timeDeviations(), contentDeviations(), watchDeviations(), informerDeviations(),
		discoveryDeviations(), identityDeviations(), auditDeviations(), processDeviations(), twinDeviations(), impossibleDeviations(), acceptableDeviations(),
	)
}

// ownDeviations: a server refuses for 8 s what it serves itself.
func ownDeviations() (list []deviation) {
	for _, a := range slices.Concat(refusals, []answer{object404}, failures) {
		p := ownReads
		if a.name == object404.name {
			p = all(ownReads, lists)
		}
		list = append(list, deviation{"what a server serves itself", a.name + " for 8 s", wrong, "", func(e *edit) { e.reply(p, a, false) }})
	}
	return list
}

// acrossDeviations: requests that have to cross are refused for 8 s, by the asked server or by the
// peer.
func acrossDeviations() (list []deviation) {
	for _, a := range slices.Concat(refusals, []answer{object404}, failures) {
		p := acrossReads
		if a.name == object404.name {
			p = all(acrossReads, lists)
		}
		list = append(list, deviation{"refusals across the hop", a.name + " by the asked server", wrong, "", func(e *edit) {
			e.reply(p, a,
				false)
		}})
	}
	for _, a := range refusals {
		if slices.Contains([]int{401, 403, 404, 429, 500, 503}, a.Status) {
			list = append(list, deviation{"refusals across the hop", a.name + " by the peer", wrong, "", func(e *edit) {
				e.reply(acrossReads, a,
					true)
			}})
		}
	}
	return append(list,
		deviation{"refusals across the hop", "500 to every write", wrong, "", func(e *edit) {
			e.reply(all(across, writes, window), status(500, "InternalError"), false)
		}},
		deviation{"refusals across the hop", "404 to every tenth request of the run", wrong, "", func(e *edit) {
			e.reply(all(across, reads, resource, late, every(10)), status(404, ""), false)
		}},
	)
}

// alikeDeviations: all servers are wrong in the same way, from a fifth of the run on.
func alikeDeviations() (list []deviation) {
	const family = "all servers wrong alike"
	one := func(e *edit, p pick) pick { return all(p, late, about(e.commonest(all(across, reads, resource)))) }
	for _, a := range refusals {
		if slices.Contains([]int{400, 401, 403, 404, 409, 410, 422, 429, 500, 503}, a.Status) {
			list = append(list, deviation{family, a.name + " for one kind", wrong, "", func(e *edit) {
				e.reply(one(e, all(either(own, across), reads)), a, false)
			}})
		}
	}
	change := func(name string, p pick, do func(*history.Operation)) {
		list = append(list, deviation{family, name, wrong, "", func(e *edit) { e.each(one(e, all(either(own, across), p)), do) }})
	}
	change("lists of one kind are objects", lists, func(o *history.Operation) { o.Body = history.BodyObject })
	change("lists of one kind are text", lists, func(o *history.Operation) {
		o.Body, o.Content, o.MediaType = history.BodyText, "",
			"text/html"
	})
	change("lists of one kind have no body", lists, func(o *history.Operation) { o.Body, o.Content = history.BodyNone, "" })
	return append(list,
		deviation{family, "discovery lacks a resource", wrong, "", func(e *edit) {
			e.document(all(docs(history.VerbDiscovery), late), func(d history.Document) history.Document {
				d.Resources = d.Resources[1:]
				return d
			})
		}},
		deviation{family, "every watch is silent", wrong, "watch-through-proxy", func(e *edit) {
			e.each(all(verb("watch"), late), func(o *history.Operation) { o.Events = 0 })
		}},
		deviation{family, "every write of one kind is refused with 500", wrong, "", func(e *edit) {
			e.reply(all(either(own, across), writes, late, about(e.commonest(all(across, writes)))), status(500, "InternalError"), false)
		}},
		deviation{family, "every list by label has half of the objects", wrong, "large-list", func(e *edit) {
			e.each(all(late, func(_ *edit, o *history.Operation) bool { return o.Items > 1 }), func(o *history.Operation) { o.Items /= 2 })
		}},
	)
}

func timeDeviations() (list []deviation) {
	const family = "time"
	slow := func(name string, r right, p pick, takes time.Duration) {
		list = append(list, deviation{family, name, r, "", func(e *edit) { e.slow(p, takes) }})
	}
	slow("own answers take 31 s for 8 s", wrong, ownReads, hangs)
	slow("answers across the hop take 31 s for 8 s", wrong, acrossReads, hangs)
	slow("writes take 31 s for 8 s", wrong, all(either(own, across), writes, window), hangs)
	slow("discovery takes 31 s for 8 s", wrong, all(docs(history.VerbDiscovery), window), hangs)
	slow("one server takes 10 s for everything for 8 s", wrong, all(either(own, across), there, window), 10*time.Second)
	slow("every tenth own answer takes 31 s", wrong, all(own, late, every(10)), hangs)
	slow("every tenth answer across the hop takes 31 s", wrong, all(across, late, every(10)), hangs)
	slow("503 for an unreachable peer after 31 s", wrong, all(unreachable, window), hangs)
	silence := func(name string, p pick) {
		list = append(list, deviation{family, name, wrong, "", func(e *edit) { e.reply(p, failure(history.FailureTimeout, hangs), false) }})
	}
	silence("own writes hang for 8 s", all(own, writes, there, window))
	silence("writes across the hop hang for 8 s", all(across, writes, window))
	silence("discovery hangs for 8 s", all(docs(history.VerbDiscovery), window))
	silence("watches never begin for 8 s", all(verb("watch"), window))
	return append(list,
		deviation{family, "the peer handles requests before they are sent", undecided, "", func(e *edit) {
			e.eachHop(all(across, window), true, func(hop *history.Hop) { hop.Start, hop.End = hop.Start-5*time.Second, hop.End-5*time.Second })
		}},
		deviation{family, "the peer handles requests after they are answered", undecided, "", func(e *edit) {
			e.eachHop(all(across, window), true, func(hop *history.Hop) { hop.Start, hop.End = hop.Start+5*time.Second, hop.End+5*time.Second })
		}},
	)
}

// unreachable are the requests that were answered 503.
func unreachable(_ *edit, o *history.Operation) bool { return o.Status == 503 && o.GVR.Resource != "" }

func contentDeviations() (list []deviation) {
	const family = "content"
	both := func(name, on string, p pick, do func(*history.Operation)) {
		here := pick(there)
		if on != "" { // only the newest server serves it
			here = not(there)
		}
		list = append(list,
			deviation{family, name + ", own", wrong, on, func(e *edit) { e.each(all(own, p, here, window), do) }},
			deviation{family, name + ", across the hop", wrong, on, func(e *edit) { e.each(all(across, p, window), do) }})
	}
	labelled := func(_ *edit, o *history.Operation) bool { return o.Items > 1 }
	body := func(b history.Body) func(*history.Operation) { return func(o *history.Operation) { o.Body = b } }
	both("a list is an object", "", lists, body(history.BodyObject))
	both("a list is a table", "", lists, body(history.BodyTable))
	both("a table is a list", "", verb(history.VerbTable), body(history.BodyList))
	both("an object is a list", "", verb("get", "create", "patch"), body(history.BodyList))
	both("200 with a Status", "", reads, func(o *history.Operation) {
		o.Body, o.Reason, o.Message = history.BodyStatus, "NotFound",
			"altered"
	})
	both("200 without a body", "", reads, func(o *history.Operation) { o.Body, o.Content = history.BodyNone, "" })
	both("200 with a page of HTML", "", reads, func(o *history.Operation) {
		o.Body, o.Content, o.MediaType = history.BodyText, "",
			"text/html"
	})
	both("a media type that nobody asked for", "", reads, func(o *history.Operation) { o.MediaType = "application/cbor" })
	both("JSON that cannot be decoded", "", reads, func(o *history.Operation) { o.Content = history.ContentBroken })
	both("200 becomes 201", "", reads, func(o *history.Operation) { o.Status = 201 })
	both("200 becomes 204 without a body", "", reads, func(o *history.Operation) { o.Status, o.Body, o.Content = 204, history.BodyNone, "" })
	both("200 becomes 302", "", reads, func(o *history.Operation) { o.Status, o.Body, o.Content = 302, history.BodyNone, "" })
	both("half of the objects", "large-list", labelled, func(o *history.Operation) { o.Items /= 2 })
	both("one object less", "large-list", labelled, func(o *history.Operation) { o.Items-- })
	both("one object more", "large-list", labelled, func(o *history.Operation) { o.Items++ })
	both("paging without end", "large-list", labelled, func(o *history.Operation) { o.More = true })
	both("paging ends at the first page", "large-list", func(_ *edit, o *history.Operation) bool { return o.More },
		func(o *history.Operation) { o.More = false })
	compared := func(_ *edit, o *history.Operation) bool { return o.Object != "" }
	return append(list,
		deviation{family, "objects are altered across the hop", wrong, "", func(e *edit) {
			e.each(all(across, compared, late), func(o *history.Operation) { o.Object += "0" })
		}},
		deviation{family, "objects of one server are altered", wrong, "", func(e *edit) {
			e.each(all(own, compared, there, late), func(o *history.Operation) { o.Object += "0" })
		}},
		deviation{family, "headers are lost across the hop", wrong, "", func(e *edit) {
			e.each(all(across, late, func(_ *edit, o *history.Operation) bool { return o.Headers != "" }),
				func(o *history.Operation) { o.Headers = "" })
		}},
		deviation{family, "a header is altered across the hop", wrong, "", func(e *edit) {
			e.each(all(across, late, func(_ *edit, o *history.Operation) bool { return o.Headers != "" }),
				func(o *history.Operation) { o.Headers += "\nX-Altered: 1" })
		}},
		deviation{family, "an upgrade is answered 200", wrong, "upgrade-requests", func(e *edit) {
			e.each(all(upgrades, window), func(o *history.Operation) { o.Status, o.Body = 200, history.BodyText })
		}},
		deviation{family, "a created object is not created: 200 with a Status", wrong, "", func(e *edit) {
			e.each(all(either(own, across), verb("create"), late), func(o *history.Operation) { o.Body = history.BodyStatus })
		}},
	)
}

func watchDeviations() (list []deviation) {
	const family = "watches"
	begun := func(_ *edit, o *history.Operation) bool {
		return o.Verb == "watch" && o.Events > 2 && o.Status < 300 && o.Failure == ""
	}
	both := func(name string, do func(*history.Operation)) {
		list = append(list,
			deviation{family, name + ", own", wrong, "watch-through-proxy", func(e *edit) { e.each(all(begun, not(crosses), late), do) }},
			deviation{family, name + ", across the hop", wrong, "watch-through-proxy", func(e *edit) { e.each(all(begun, crosses, late), do) }})
	}
	both("no event arrives", func(o *history.Operation) { o.Events = 0 })
	both("half of the events are lost", func(o *history.Operation) { o.Events /= 2 })
	both("every event arrives twice", func(o *history.Operation) { o.Events *= 2 })
	both("ends at once", func(o *history.Operation) { o.End, o.Events = o.Start+50*time.Millisecond, 0 })
	both("is reset halfway", func(o *history.Operation) {
		o.End, o.Failure, o.Events = o.Start+(o.End-o.Start)/2, history.FailureReset, o.Events/2
	})
	both("is a list", func(o *history.Operation) { o.Body, o.Events = history.BodyList, 0 })
	both("hangs", func(o *history.Operation) { o.Failure, o.Status, o.Events, o.Body = history.FailureTimeout, 0, 0, "" })
	return append(list, deviation{family, "upgraded watches deliver nothing", wrong, "upgrade-requests", func(e *edit) {
		e.each(all(upgrades, late, func(_ *edit, o *history.Operation) bool { return o.Events > 0 }), func(o *history.Operation) { o.Events = 0 })
	}})
}

// informerDeviations alter what informers received, in saved runs.
func informerDeviations() (list []deviation) {
	const family, on = "informers", "informers"
	// nth finds a delivery of a kind in the middle of the run.
	nth := func(e *edit, kinds ...history.DeliveryKind) int {
		return slices.IndexFunc(e.h.Deliveries, func(d history.Delivery) bool { return d.At > e.from && slices.Contains(kinds, d.Kind) })
	}
	one := func(name string, r right, kinds []history.DeliveryKind, do func(*edit, int)) {
		list = append(list, deviation{family, name, r, on, func(e *edit) {
			if i := nth(e, kinds...); i >= 0 {
				do(e, i)
				e.touched++
			}
		}})
	}
	events := []history.DeliveryKind{history.DeliveryAdded, history.DeliveryModified, history.DeliveryDeleted}
	lose := func(e *edit, i int) { e.h.Deliveries = slices.Delete(e.h.Deliveries, i, i+1) }
	own := func(e *edit, i int) *history.Delivery {
		d := &e.h.Deliveries[i]
		d.Objects = slices.Clone(d.Objects)
		return d
	}
	one("an addition is lost", wrong, events[:1], lose)
	one("a change is lost", wrong, events[1:2], lose)
	one("a deletion is lost", wrong, events[2:], lose)
	one("an event is repeated", wrong, events, func(e *edit, i int) {
		d := e.h.Deliveries[i]
		d.Index = 1_000_000
		e.h.Deliveries = slices.Insert(e.h.Deliveries, i+1, d)
	})
	one("an event arrives a minute late", wrong, events, func(e *edit, i int) {
		e.h.Deliveries[i].At = min(e.h.Deliveries[i].At+time.Minute, e.h.End.At)
		e.h.Deliveries[i].Index = 1_000_000
		e.h.Sort()
	})
	one("an addition is a change", wrong, events[:1], func(e *edit, i int) { e.h.Deliveries[i].Kind = history.DeliveryModified })
	one("an event has the resource version 1", wrong, events, func(e *edit, i int) {
		d := own(e, i)
		d.ResourceVersion, d.Objects[0].ResourceVersion = "1", "1"
	})
	one("an event is about an object that never was", wrong, events, func(e *edit, i int) { own(e, i).Objects[0].UID = "altered" })
	one("a bookmark goes back to 1", wrong, []history.DeliveryKind{history.DeliveryBookmark}, func(e *edit,
		i int) {
		e.h.Deliveries[i].ResourceVersion = "1"
	})
	one("a list lacks an object", wrong, []history.DeliveryKind{history.DeliveryListed}, func(e *edit, i int) {
		if d := own(e, i); len(d.Objects) > 0 {
			d.Objects = d.Objects[1:]
		}
	})
	return append(list, deviation{family, "all events after the middle are lost", wrong, on, func(e *edit) {
		before := len(e.h.Deliveries)
		e.h.Deliveries = slices.DeleteFunc(e.h.Deliveries, func(d history.Delivery) bool {
			return d.At > e.from && slices.Contains(events,
				d.Kind)
		})
		e.touched = before - len(e.h.Deliveries)
	}})
}

func discoveryDeviations() (list []deviation) {
	const family = "discovery"
	merged := all(docs(history.VerbDiscovery), there)
	change := func(name string, r right, on string, p pick, do func(history.Document) history.Document) {
		list = append(list, deviation{family, name, r, on, func(e *edit) { e.document(p, do) }})
	}
	with := func(do func(*history.Resource)) func(history.Document) history.Document {
		return func(d history.Document) history.Document {
			do(&d.Resources[len(d.Resources)/2])
			return d
		}
	}
	change("the order of groups is another", wrong, "", all(merged, late), func(d history.Document) history.Document {
		slices.SortStableFunc(d.Resources, func(a, b history.Resource) int { return -strings.Compare(a.Group, b.Group) })
		return d
	})
	change("the order of versions is another", wrong, "", all(merged, late), func(d history.Document) history.Document {
		slices.SortStableFunc(d.Resources, func(a, b history.Resource) int {
			if a.Group != b.Group {
				return 0
			}
			return cmp.Compare(a.Version, b.Version)
		})
		slices.Reverse(d.Resources)
		return d
	})
	change("one server lacks a resource for 8 s", wrong, "", all(merged, window), func(d history.Document) history.Document {
		d.Resources = slices.Delete(d.Resources, len(d.Resources)/2, len(d.Resources)/2+1)
		return d
	})
	change("one server lacks a resource", wrong, "", all(merged, late), func(d history.Document) history.Document {
		d.Resources = slices.Delete(d.Resources, len(d.Resources)/2, len(d.Resources)/2+1)
		return d
	})
	change("one server lists a resource that nobody serves", wrong, "", all(merged, late), func(d history.Document) history.Document {
		ghost := d.Resources[0]
		ghost.Resource = "ghosts"
		d.Resources = append(d.Resources, ghost)
		return d
	})
	change("a resource is listed twice", wrong, "", all(merged, late), func(d history.Document) history.Document {
		d.Resources = append(d.Resources, d.Resources[0])
		return d
	})
	change("a scope is another", wrong, "", all(merged, late), with(func(r *history.Resource) { r.Namespaced = !r.Namespaced }))
	change("a kind has another name", wrong, "", all(merged, late), with(func(r *history.Resource) { r.Kind = "Altered" }))
	change("a verb is missing", wrong, "", all(merged, late), with(func(r *history.Resource) { r.Verbs = r.Verbs[:len(r.Verbs)-1] }))
	change("a verb is too many", wrong, "", all(merged, late), with(func(r *history.Resource) {
		r.Verbs = append(slices.Clone(r.Verbs),
			"altered")
	}))
	change("subresources are missing", wrong, "", all(merged, late), func(d history.Document) history.Document {
		for i := range d.Resources {
			d.Resources[i].Subresources = nil
		}
		return d
	})
	change("the scope of all servers is another", wrong, "", all(docs(history.VerbDiscovery), late),
		with(func(r *history.Resource) { r.Namespaced = !r.Namespaced }))
	change("the own view lacks a resource", wrong, "nopeer-profile", all(docs(history.VerbNoPeer), there, late),
		func(d history.Document) history.Document {
			d.Resources = d.Resources[1:]
			return d
		})
	change("the own view lists a resource too many", wrong, "nopeer-profile", all(docs(history.VerbNoPeer), there, late),
		func(d history.Document) history.Document {
			ghost := d.Resources[0]
			ghost.Resource = "ghosts"
			d.Resources = append(d.Resources, ghost)
			return d
		})
	change("legacy discovery lacks a group version", wrong, "nopeer-profile", all(docs(history.VerbLegacy), there, late),
		func(d history.Document) history.Document {
			d.Resources = d.Resources[1:]
			return d
		})
	reply := func(name string, a answer) {
		list = append(list, deviation{family, name, wrong, "", func(e *edit) { e.reply(all(merged, window), a, false) }})
	}
	reply("/apis is answered 404 for 8 s", status(404, ""))
	reply("/apis is answered 500 for 8 s", status(500, "InternalError"))
	reply("/apis is answered 503 for 8 s", status(503, "ServiceUnavailable"))
	reply("/apis is answered 403 for 8 s", status(403, "Forbidden"))
	return append(list,
		deviation{family, "one ETag for two documents", wrong, "", func(e *edit) {
			e.document(all(merged, late), func(d history.Document) history.Document { d.Resources = d.Resources[1:]; return d })
			e.each(docs(history.VerbDiscovery), func(o *history.Operation) { o.ETag = `"same"` })
		}},
		deviation{family, "two ETags for one document", wrong, "", func(e *edit) {
			e.each(all(merged, late), func(o *history.Operation) { o.ETag = `"altered"` })
		}},
		deviation{family, "no ETag", wrong, "", func(e *edit) { e.each(all(merged, late), func(o *history.Operation) { o.ETag = "" }) }},
		deviation{family, "/apis is a page of HTML for 8 s", wrong, "", func(e *edit) {
			e.each(all(merged, window), func(o *history.Operation) {
				o.Document, o.Body, o.ETag, o.MediaType = "", history.BodyText, "", "text/html"
			})
		}},
		deviation{family, "/apis is empty for 8 s", wrong, "", func(e *edit) {
			e.h.Documents["empty"] = history.Document{Hash: "empty"}
			e.each(all(merged, window), func(o *history.Operation) { o.Document, o.ETag = "empty", `"empty"` })
		}},
		deviation{family, "one server answers its own view for 8 s", wrong, "", func(e *edit) {
			for _, v := range e.h.Served {
				if v.Server == e.server {
					e.touched = 0
					e.each(all(merged, window), func(o *history.Operation) { o.Document, o.ETag = v.Document, `"own"` })
				}
			}
		}},
	)
}

func identityDeviations() (list []deviation) {
	const family = "identity"
	peer := func(name string, do func(*history.Hop)) {
		list = append(list, deviation{family, name, wrong, "", func(e *edit) { e.eachHop(all(across, window), true, do) }})
	}
	peer("another user at the peer", func(hop *history.Hop) { hop.User = "mallory" })
	peer("the asked server is the user at the peer", func(hop *history.Hop) { hop.User = "system:apiserver" })
	peer("nobody is the user at the peer", func(hop *history.Hop) { hop.User = "system:anonymous" })
	peer("no user is recorded at the peer", func(hop *history.Hop) { hop.User = "" })
	peer("other groups at the peer", func(hop *history.Hop) { hop.Groups = "altered" })
	peer("no UID at the peer", func(hop *history.Hop) { hop.UID = "" })
	peer("another UID at the peer", func(hop *history.Hop) { hop.UID = "altered" })
	peer("other extra fields at the peer", func(hop *history.Hop) { hop.Extra = "altered" })
	peer("the peer cannot authenticate the server, and answers", func(hop *history.Hop) { hop.User, hop.Unauthenticated = "", "altered" })
	denied := func(_ *edit, o *history.Operation) bool { return o.Status == 403 && o.GVR.Resource != "" }
	permit := func(o *history.Operation) {
		*o.Received = history.Received{Status: 200, Body: history.BodyList, Content: history.ContentWhole}
	}
	return append(list,
		deviation{family, "another user at the asked server", wrong, "", func(e *edit) {
			e.eachHop(all(own, there, window), false, func(hop *history.Hop) { hop.User = "mallory" })
		}},
		deviation{family, "who may not gets an answer, own", wrong, "", func(e *edit) {
			e.each(all(denied, not(crosses), there, late), permit)
			e.hops403()
		}},
		deviation{family, "who may not gets an answer, across the hop", wrong, "", func(e *edit) {
			e.each(all(denied, crosses, late), permit)
			e.hops403()
		}},
	)
}

// hops403 gives the records of altered answers their status.
func (e *edit) hops403() {
	for i := range e.h.Operations {
		if o := &e.h.Operations[i]; o.Status == 200 {
			for _, peer := range []bool{false, true} {
				e.hop(o, peer, func(hop *history.Hop) {
					if hop.Status == 403 {
						hop.Status = 200
					}
				})
			}
		}
	}
}

func auditDeviations() (list []deviation) {
	const family = "audit"
	peer := func(name string, do func(*history.Hop)) {
		list = append(list, deviation{family, name, wrong, "", func(e *edit) { e.eachHop(all(across, window), true, do) }})
	}
	peer("the peer records another status", func(hop *history.Hop) { hop.Status = 500 })
	peer("the peer records another client", func(hop *history.Hop) { hop.Client = "192.0.2.1" })
	peer("the path is altered on the hop", func(hop *history.Hop) { hop.Altered = "path: altered" })
	peer("the query is altered on the hop", func(hop *history.Hop) { hop.Altered = "query: without dryRun=All" })
	peer("the body is altered on the hop", func(hop *history.Hop) { hop.Altered = "body: another" })
	peer("the method is altered on the hop", func(hop *history.Hop) { hop.Altered = "method: DELETE" })
	peer("headers are altered on the hop", func(hop *history.Hop) { hop.Altered = "headers: others" })
	peer("the peer is a server that does not serve it", func(hop *history.Hop) {
		if hop.Server = "c"; hop.From == "c" {
			hop.Server = "b"
		}
	})
	wroteOnce := all(across, writes, window)
	return append(list,
		deviation{family, "the asked server records another status", wrong, "", func(e *edit) {
			e.eachHop(all(across, window), false, func(hop *history.Hop) { hop.Status = 500 })
		}},
		deviation{family, "own answers are recorded with another status", wrong, "", func(e *edit) {
			e.eachHop(ownReads, false, func(hop *history.Hop) { hop.Status = 500 })
		}},
		deviation{family, "the peer records nothing", wrong, "", func(e *edit) {
			e.each(all(across, late), func(o *history.Operation) { e.drop(o, true) })
		}},
		deviation{family, "the asked server records nothing", wrong, "", func(e *edit) {
			e.each(all(across, late), func(o *history.Operation) { e.drop(o, false) })
		}},
		deviation{family, "own requests are not recorded for 8 s", wrong, "", func(e *edit) {
			e.each(all(own, there, window), func(o *history.Operation) { e.drop(o, false) })
		}},
		deviation{family, "writes are carried out twice by the peer", wrong, "", func(e *edit) {
			e.add(wroteOnce, func(hop *history.Hop) { hop.Start = hop.End })
		}},
		deviation{family, "own writes are carried out twice", wrong, "", func(e *edit) {
			for i := range e.h.Operations {
				if o := &e.h.Operations[i]; all(own, writes, window)(e, o) && len(e.hops[o.ID]) > 0 {
					e.h.Hops = append(e.h.Hops, e.h.Hops[e.hops[o.ID][0]])
					e.touched++
				}
			}
		}},
		deviation{family, "the peer passes the request on", wrong, "", func(e *edit) {
			e.add(all(across, reads, window), func(hop *history.Hop) { hop.From, hop.Server = hop.Server, hop.From })
		}},
	)
}

// twinDeviations: two servers have one host name, which explains only what they are taken for each
// other in. Server c has its own.
func twinDeviations() (list []deviation) {
	const family = "beside two servers of one host name"
	meanwhile := func(e *edit, o *history.Operation) bool {
		return slices.ContainsFunc(e.h.Faults, func(f history.Fault) bool {
			return f.Kind == history.FaultMisconfiguration && f.Start <= o.Start && o.Start < f.End
		})
	}
	ofC := func(_ *edit, o *history.Operation) bool { return o.Server == "c" }
	denied := func(_ *edit, o *history.Operation) bool { return o.Status == http.StatusNotFound }
	reply := func(name string, p pick, a answer, byPeer bool) {
		list = append(list, deviation{family, name, wrong, "two-servers-one-hostname", func(e *edit) { e.reply(all(p, resource), a, byPeer) }})
	}
	reply("a third server denies what all serve", all(own, reads, ofC, meanwhile), status(404, ""), false)
	reply("the one that serves it denies it", all(across, ofC, meanwhile), status(404, ""), true)
	reply("the other one answers 500", all(crosses, denied, ofC, meanwhile), status(500, "InternalError"), true)
	reply("a third server answers 503", all(crosses, denied, ofC, meanwhile), status(503, "ServiceUnavailable"), false)
	reply("a third server denies it once both have their own", all(across, ofC, func(e *edit, o *history.Operation) bool {
		return o.Start > e.h.End.At*4/5
	}), status(404, ""), false)
	return list
}

func processDeviations() (list []deviation) {
	const family, on = "starting and stopping", "rolling-upgrade"
	state := func(name string, r right, s history.State, revives bool) {
		list = append(list, deviation{family, name, r, "", func(e *edit) {
			last := history.Lifecycle{}
			for _, l := range e.h.Lifecycle {
				if l.Server == e.server && l.At < e.from {
					last = l
				}
			}
			last.At, last.State, last.Detail = e.from, s, "altered"
			e.h.Lifecycle = append(e.h.Lifecycle, last)
			if revives {
				for i, s := range []history.State{history.StateStarting, history.StateReady} {
					last.Incarnation, last.State, last.At = last.Incarnation+1-i, s, e.from+time.Duration(1+2*i)*time.Second
					e.h.Lifecycle = append(e.h.Lifecycle, last)
				}
			}
			e.h.Sort()
			e.touched++
		}})
	}
	state("a server crashes", wrong, history.StateCrashed, false)
	state("a server crashes and starts again", wrong, history.StateCrashed, true)
	state("a server stops without a step", wrong, history.StateStopped, false)
	state("a server is killed without a step", wrong, history.StateKilled, true)
	state("a server is paused without a step", undecided, history.StatePaused, false)
	down := func(_ *edit, o *history.Operation) bool {
		return o.Failure == history.FailureRefused || o.Failure == history.FailureReset
	}
	return append(list,
		deviation{family, "a stopped server answers", undecided, on, func(e *edit) {
			e.each(all(down, reads), func(o *history.Operation) {
				*o.Received = history.Received{Status: 200, Body: history.BodyList, Content: history.ContentWhole}
			})
		}},
		deviation{family, "a server is never ready again", wrong, on, func(e *edit) {
			i := len(e.h.Lifecycle) - 1
			for ; i >= 0 && e.h.Lifecycle[i].State != history.StateReady; i-- {
			}
			if i >= 0 && e.h.Lifecycle[i].Incarnation > 1 {
				e.h.Lifecycle = slices.Delete(e.h.Lifecycle, i, i+1)
				e.touched++
			}
		}},
		deviation{family, "a server is ready and refuses connections for 8 s", wrong, "", func(e *edit) {
			e.reply(all(func(_ *edit, o *history.Operation) bool { return o.Status != 0 }, there, window), failure(history.FailureRefused, 0), false)
		}},
		deviation{family, "a new server answers 404 for what it serves, for 8 s from its start", wrong, on, func(e *edit) {
			for _, l := range e.h.Lifecycle {
				if l.State == history.StateReady && l.Incarnation > 1 {
					e.server, e.from, e.to = l.Server, l.At, l.At+lasts
				}
			}
			e.reply(ownReads, status(404, ""), false)
		}},
		deviation{family, "a server comes back with another version", undecided, on, func(e *edit) {
			for i := range e.h.Lifecycle {
				if l := &e.h.Lifecycle[i]; l.Incarnation > 1 {
					l.Version = "v1.30.0"
					e.touched++
				}
			}
		}},
	)
}

// impossibleDeviations alter records to what no run can record.
func impossibleDeviations() (list []deviation) {
	const family = "records that cannot be"
	op := func(name string, p pick, do func(*edit, *history.Operation)) {
		list = append(list, deviation{family, name, undecided, "", func(e *edit) { e.each(p, func(o *history.Operation) { do(e, o) }) }})
	}
	op("an answer before its request", ownReads, func(_ *edit, o *history.Operation) { o.End = o.Start - time.Second })
	op("neither an answer nor a failure", ownReads, func(_ *edit, o *history.Operation) { *o.Received = history.Received{} })
	op("an answer and a failure", ownReads, func(_ *edit, o *history.Operation) { o.Failure = history.FailureRefused })
	op("status 999", ownReads, func(_ *edit, o *history.Operation) { o.Status = 999 })
	op("a negative status", ownReads, func(_ *edit, o *history.Operation) { o.Status = -1 })
	op("a negative number of objects", ownReads, func(_ *edit, o *history.Operation) { o.Items = -5 })
	op("one Audit-ID for several requests", ownReads, func(_ *edit, o *history.Operation) { o.ID = "same" })
	op("no Audit-ID", ownReads, func(_ *edit, o *history.Operation) { o.ID = "" })
	op("requests after the end of the run", ownReads, func(e *edit, o *history.Operation) {
		o.Start, o.End = o.Start+e.h.End.At,
			o.End+e.h.End.At
	})
	op("requests before the run", ownReads, func(_ *edit, o *history.Operation) { o.Start, o.End = -time.Second, -time.Second/2 })
	op("a request to an unknown server", ownReads, func(_ *edit, o *history.Operation) { o.Server = "z" })
	op("an unknown verb", ownReads, func(_ *edit, o *history.Operation) { o.Verb = "altered" })
	op("an unknown kind of body", ownReads, func(_ *edit, o *history.Operation) { o.Body = "altered" })
	op("a 200 that denies the resource", ownReads, func(_ *edit, o *history.Operation) { o.Missing = history.MissingResource })
	other := func(name string, do func(*edit)) {
		list = append(list, deviation{family, name, undecided, "", func(e *edit) { do(e); e.touched++ }})
	}
	other("no end", func(e *edit) { e.h.End = history.End{} })
	other("the run ended early", func(e *edit) { e.h.End.Error = "altered" })
	other("an unknown document is served", func(e *edit) { e.h.Served[len(e.h.Served)-1].Document = "altered" })
	other("nothing is known of what a server serves", func(e *edit) {
		e.h.Served = slices.DeleteFunc(e.h.Served, func(v history.Served) bool { return v.Server == e.server })
	})
	other("a server is ready and was never started", func(e *edit) {
		e.h.Lifecycle = slices.DeleteFunc(e.h.Lifecycle, func(l history.Lifecycle) bool { return l.Server == e.server && l.State == history.StateStarting })
	})
	other("a server is ready twice", func(e *edit) {
		i := slices.IndexFunc(e.h.Lifecycle, func(l history.Lifecycle) bool { return l.Server == e.server && l.State == history.StateReady })
		l := e.h.Lifecycle[i]
		l.At += time.Second
		e.h.Lifecycle = slices.Insert(e.h.Lifecycle, i+1, l)
	})
	other("nothing is known of a server's process", func(e *edit) {
		e.h.Lifecycle = slices.DeleteFunc(e.h.Lifecycle, func(l history.Lifecycle) bool { return l.Server == e.server })
	})
	return append(list,
		deviation{family, "a record of an unknown request", undecided, "", func(e *edit) {
			e.eachHop(all(across, window), true, func(hop *history.Hop) { hop.Operation = "altered" })
		}},
		deviation{family, "a record of an unknown server", undecided, "", func(e *edit) {
			e.eachHop(all(across, window), true, func(hop *history.Hop) { hop.Server = "z" })
		}},
		deviation{family, "a record that ends before it starts", undecided, "", func(e *edit) {
			e.eachHop(all(across, window), true, func(hop *history.Hop) { hop.End = hop.Start - time.Second })
		}},
		deviation{family, "a fault that ends before it starts", undecided, "peer-partition", func(e *edit) {
			if len(e.h.Faults) > 0 {
				e.h.Faults[0].End = e.h.Faults[0].Start - time.Second
				e.touched++
			}
		}},
		deviation{family, "a fault without effect", undecided, "peer-partition", func(e *edit) {
			if len(e.h.Faults) > 0 {
				e.h.Faults[0].Evidence = history.Evidence{}
				e.touched++
			}
		}},
	)
}

// acceptableDeviations alter answers to others that are as right. A judge that calls them wrong
// raises a false alarm.
func acceptableDeviations() (list []deviation) {
	const family = "acceptable"
	one := func(name, on string, alter func(*edit)) {
		list = append(list, deviation{family, name, acceptable, on, alter})
	}
	one("own answers take 2 s for 8 s", "", func(e *edit) { e.slow(ownReads, 2*time.Second) })
	one("answers across the hop take 2 s for 8 s", "", func(e *edit) { e.slow(acrossReads, 2*time.Second) })
	one("503 for an unreachable peer takes 25 s", "peer-partition", func(e *edit) {
		e.slow(all(unreachable, window, crossing503), 25*time.Second)
	})
	one("a watch delivers an event more", "watch-through-proxy", func(e *edit) {
		e.each(all(verb("watch"), every(5), func(_ *edit, o *history.Operation) bool { return o.Events > 0 }),
			func(o *history.Operation) { o.Events++ })
	})
	one("the load cancels requests", "", func(e *edit) {
		e.each(all(ownReads, every(5)), func(o *history.Operation) { *o.Received = history.Received{Failure: history.FailureCanceled} })
	})
	one("messages of errors are others", "", func(e *edit) {
		e.each(all(late, func(_ *edit, o *history.Operation) bool { return o.Status == 404 && o.Missing == history.MissingObject }),
			func(o *history.Operation) {
				o.Message = strings.ToUpper(o.Message)
			})
	})
	one("all Audit-IDs are others", "", func(e *edit) {
		e.each(func(*edit, *history.Operation) bool { return true }, func(o *history.Operation) { o.ID += "-altered" })
		for i := range e.h.Hops {
			e.h.Hops[i].Operation += "-altered"
		}
	})
	one("the run begins a second later", "", func(e *edit) { e.h.Run.StartedAt = e.h.Run.StartedAt.Add(time.Second); e.touched++ })
	return list
}

// crossing503 are requests that no peer recorded, as no peer could be reached.
func crossing503(e *edit, o *history.Operation) bool { return !crosses(e, o) }
