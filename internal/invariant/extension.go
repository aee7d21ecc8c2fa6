package invariant

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Extension says whether a custom resource or an aggregated API was defined in the place of a
// violation. Except where its values say otherwise, it was in a group version that some server of
// the run has built in: released servers use nothing of such a group version that their peers
// report.
type Extension string

// These are all extensions.
const (
	ExtensionNone Extension = "" // nothing was defined there, or it explains only a part of what is wrong
	// ExtensionVersion means that the definition is in the group version of what the response
	// denies, lacks or lists differently.
	ExtensionVersion Extension = "in its group version"
	// ExtensionGone is about a merged document that lists what no server serves, and lacks nothing. It
	// means that all of this was defined in the run, and that the definitions were deleted. Nobody
	// needs to have the group versions built in.
	ExtensionGone Extension = "of a deleted definition"
	// ExtensionOrder is about VersionOrder only. It means that the versions of every group would be
	// in order without those in which something is defined, or was until shortly before. So what is
	// in the wrong place is what a server lists that has such a definition. These versions need not
	// be built in anywhere.
	ExtensionOrder Extension = "in the version in the wrong place"
	// ExtensionDistrusts is about an aggregated API that the asked server serves. The API's own server
	// must not trust the front-proxy certificate of some apiserver, at that time or shortly before.
	// This apiserver then finds the API unavailable, and says so in the status of the APIService,
	// which all apiservers share.
	ExtensionDistrusts Extension = "an aggregated API that distrusts a server"
)

// words says it for people.
func (e Extension) words() string {
	if e == ExtensionDistrusts {
		return "of " + string(e)
	}
	return "a custom resource is " + string(e)
}

// extensionGrace is how long released servers go on to leave out a group version after its last
// definition is deleted. Source: defaultExclusionGracePeriod in k8s.io/apiserver,
// pkg/util/peerproxy/peerproxy.go, from v1.36 on. v1.35 may leave it out for longer.
const extensionGrace = 5 * time.Minute

type groupVersion struct{ group, version string }

func (k key) groupVersion() groupVersion { return groupVersion{k.Group, k.Version} }

// exclusion is a time in which released servers leave a group version out of what they know of
// their peers, because an administrator has defined something in it.
type exclusion struct {
	window
	groupVersion
	// deleted is when the last definition was deleted, or forever. A process that starts later does
	// not know that there was one.
	deleted history.Time
}

// indexExclusions follows the definitions as upstream's GVExclusionManager does (k8s.io/apiserver,
// pkg/util/peerproxy/gv_exclusion_manager.go). The manager looks at every change of a definition.
// Only then does it forget what was deleted longer ago than extensionGrace. A deletion makes the
// manager look again after extensionGrace, unless an earlier deletion already makes it look before
// that.
func (f *Facts) indexExclusions() {
	type resource struct{ group, name string }
	type definition struct {
		versions []string
		refused  bool // since it was created
	}
	definitions := map[resource]definition{}
	open := map[groupVersion]int{} // the exclusions that have not ended, in f.exclusions
	look := forever
	reap := func(now history.Time) {
		for gv, i := range open {
			if e := &f.exclusions[i]; e.deleted != forever && now-e.deleted >= extensionGrace {
				e.to = later(now, f.bounds.Staleness)
				delete(open, gv)
			}
		}
	}
	for _, s := range f.steps {
		if s.Defined == nil {
			continue
		}
		if look <= s.Start {
			reap(look)
			look = forever
		}
		of, d := resource{s.Defined.Group, s.Defined.Resource}, definition{s.Defined.Versions, s.Refused != ""}
		before, existed := definitions[of]
		switch {
		case len(d.versions) == 0:
			delete(definitions, of)
		case d.refused && existed && !before.refused: // it stays as it was
		default:
			definitions[of] = d
		}
		active := map[groupVersion]bool{}
		for of, d := range definitions {
			for _, v := range d.versions {
				active[groupVersion{of.group, v}] = true
			}
		}
		for gv := range active {
			i, known := open[gv]
			if !known {
				i, open[gv] = len(f.exclusions), len(f.exclusions)
				f.exclusions = append(f.exclusions, exclusion{window: window{s.Start, forever}, groupVersion: gv})
			}
			f.exclusions[i].deleted = forever
		}
		reap(s.End)
		for gv, i := range open {
			if e := &f.exclusions[i]; !active[gv] && e.deleted == forever {
				e.deleted = s.End
				look = min(look, later(s.End, extensionGrace))
			}
		}
	}
	if look != forever {
		reap(look)
	}
}

// excluded reports whether the server may leave a group version out at any time in w, and some
// server of the run has it built in.
func (f *Facts) excluded(by *server, gv groupVersion, w window) bool {
	return f.leftOut(by, gv, w) && f.builtInAnywhere(gv)
}

// leftOut reports whether the server may leave a group version out at any time in w, wherever it is
// built in.
func (f *Facts) leftOut(by *server, gv groupVersion, w window) bool {
	started := by.line.at(w.from).startOf(by.line)
	return slices.ContainsFunc(f.exclusions, func(e exclusion) bool {
		return e.groupVersion == gv && e.overlaps(w) && started < later(e.deleted, f.bounds.Staleness)
	})
}

// startOf is when the process of the span was started, or the beginning if the history does not
// say.
func (s span) startOf(line timeline) history.Time {
	for _, other := range line {
		if other.incarnation == s.incarnation && other.phase != phaseDown {
			return other.from
		}
	}
	return beginning
}

// builtInAnywhere reports whether any server has a group version built in. That is so if the server
// served something of it while nothing was defined there, or something that no definition can have
// made.
func (f *Facts) builtInAnywhere(gv groupVersion) bool {
	if is, done := f.builtIns[gv]; done {
		return is
	}
	is := slices.ContainsFunc(f.servers, func(s *server) bool {
		return slices.ContainsFunc(s.documents(), func(piece served) bool { return f.native(piece, gv) })
	})
	f.builtIns[gv] = is
	return is
}

// native reports whether the document that a server served shows that it has the group version
// built in. Definitions have no subresources.
func (f *Facts) native(piece served, gv groupVersion) bool {
	if !piece.doc.lists[key{GVR: history.GVR{Group: gv.group, Version: gv.version}}] {
		return false
	}
	free := !slices.ContainsFunc(f.exclusions, func(e exclusion) bool {
		return e.groupVersion == gv && e.from <= piece.from && piece.from < later(e.deleted, f.bounds.Staleness)
	})
	return free || slices.ContainsFunc(piece.doc.Resources, func(r history.Resource) bool {
		return r.Group == gv.group && r.Version == gv.version && (len(r.Subresources) > 0 || !f.defined(r.GVR))
	})
}

// outlasts reports whether the process that served a document went on to serve a group version
// after the last definition in it was deleted, although it had been able to reach etcd for
// Staleness. So it knew of the deletion, and has the group version built in. But this shows only
// afterwards.
func (f *Facts) outlasts(s *server, piece served, gv groupVersion) bool {
	return slices.ContainsFunc(f.exclusions, func(e exclusion) bool {
		if e.groupVersion != gv {
			return false
		}
		looks := []history.Time{later(e.deleted, f.bounds.Staleness)}
		for _, fault := range f.linkFaults(link{s.name, etcd}, window{beginning, forever}) {
			looks = append(looks, later(fault.End, f.bounds.Staleness+2*settle))
		}
		return slices.ContainsFunc(looks, func(at history.Time) bool {
			return f.outlastsUntil(s, piece.incarnation, e, max(at, looks[0]))
		})
	})
}

// outlastsUntil reports whether the process served the group version of a deleted definition at a
// time before which it could reach etcd for Staleness.
func (f *Facts) outlastsUntil(s *server, incarnation int, e exclusion, at history.Time) bool {
	if at > max(f.finish, f.end.At) || s.line.at(at).incarnation != incarnation {
		return false
	}
	again := slices.ContainsFunc(f.exclusions, func(o exclusion) bool {
		return o.groupVersion == e.groupVersion && o.from <= at && at < later(o.deleted, f.bounds.Staleness)
	})
	store, _ := f.reach(s.name, etcd, window{later(at, -f.bounds.Staleness), at})
	own := s.servedAt(at)
	return !again && store == reachOpen && own.doc != nil && own.doc.lists[key{GVR: history.GVR{Group: e.group, Version: e.version}}]
}

// nativeTo reports whether the process that served a document has a group version built in. That
// does not change while the process runs, so any document of the process may show it.
func (f *Facts) nativeTo(s *server, piece served, gv groupVersion) bool {
	return slices.ContainsFunc(s.documents(), func(o served) bool { return o.incarnation == piece.incarnation && f.native(o, gv) })
}

// shadowed reports whether a server cannot serve a custom resource that it lists. This is so if the
// server has the group built in, but not the version of the custom resource: the document of a
// built-in group claims every path below the group, and the custom resource is never asked. A
// single kube-apiserver answers 404 too (director in k8s.io/apiserver, pkg/server/handler.go). An
// aggregated API comes before both.
func (f *Facts) shadowed(s *server, piece served, k key) bool {
	if !f.customIn(k) || k.subresource != "" || piece.doc == nil || f.nativeTo(s, piece, k.groupVersion()) {
		return false
	}
	return slices.ContainsFunc(piece.doc.Resources, func(r history.Resource) bool {
		return r.Group == k.Group && r.Version != k.Version && f.nativeTo(s, piece, groupVersion{r.Group, r.Version})
	})
}

// listedMeanwhile reports whether the asked server listed the resource at any time during the
// operation, without being able to serve it (see [Facts.shadowed]).
func (f *Facts) listedMeanwhile(o *observation) bool {
	w := o.window.widen(settle)
	return slices.ContainsFunc(o.resource.coverage[o.asked.index], func(c coverage) bool { return c.claim == claimListed && c.overlaps(w) })
}

// listedInVain reports whether no server could serve the resource of o, and some server listed it
// (see [Facts.shadowed]). Then every merged document lists it.
func (f *Facts) listedInVain(o *observation) bool {
	if o.local != claimNo || len(o.capable) > 0 || len(o.unsure) > 0 || len(o.lost) > 0 {
		return false
	}
	r := f.resource(o.resource.key)
	return slices.ContainsFunc(f.servers, func(s *server) bool { return r.during(s, o.window).claim == claimListed })
}

// ofNamesake reports whether o asks for a subresource of a custom resource of the asked server
// which has the group, version and name of a resource that peers have built in. Every server serves
// its own custom resources, and no definition of a run has subresources. So the subresource that
// the peers have belongs to another resource of the same name. This is so until Staleness after the
// asked server has stopped listing the custom resource.
func (f *Facts) ofNamesake(o *observation) bool {
	if o.op.Subresource == "" || !f.customIn(key{GVR: o.op.GVR}) {
		return false
	}
	recent := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
	return slices.ContainsFunc(o.asked.served, func(piece served) bool {
		return piece.overlaps(recent) && piece.doc != nil && piece.doc.lists[key{GVR: o.op.GVR}] &&
			!f.nativeTo(o.asked, piece, key{GVR: o.op.GVR}.groupVersion())
	})
}

// ofOwnNamesake reports whether the asked server has a custom resource of the name that o asks for,
// and some server of the run has the group version built in. Custom resources and built-in ones do
// not answer alike: only built-in ones take a strategic merge patch.
func (f *Facts) ofOwnNamesake(o *observation) bool {
	k := key{GVR: o.op.GVR}
	return f.customIn(k) && f.builtInAnywhere(k.groupVersion()) && !f.nativeTo(o.asked, o.asked.servedAt(o.op.Start), k.groupVersion())
}

// customIn reports whether any step of the run defined a custom resource in the version of k, with
// its name if k has one.
func (f *Facts) customIn(k key) bool {
	return slices.ContainsFunc(f.steps, func(s history.Step) bool {
		d := s.Defined
		return d != nil && !d.Aggregated && d.Group == k.Group && slices.Contains(d.Versions, k.Version) &&
			(k.Resource == "" || d.Resource == k.Resource)
	})
}

// defined reports whether any step of the run defined the resource.
func (f *Facts) defined(gvr history.GVR) bool {
	return slices.ContainsFunc(f.steps, func(s history.Step) bool {
		return s.Defined != nil && s.Defined.Group == gvr.Group && s.Defined.Resource == gvr.Resource
	})
}

// extension is the extension of a violation in the response to o. For a merged document, it is
// ExtensionVersion if the document lacks something, and everything that it lacks is in excluded
// group versions, and it lists nothing that no server serves. It is ExtensionGone if the document
// lacks nothing, and lists only too much that was defined and deleted.
func (f *Facts) extension(o *observation, candidates []Candidate) Extension {
	switch {
	case o.local == claimYes && f.aggregatedDistrusting(o, func(string) bool { return true }, o.window.widen(f.bounds.Staleness)):
		return ExtensionDistrusts
	case len(f.exclusions) == 0:
		return ExtensionNone
	case o.resource == nil || o.resource.key != (key{}):
		if o.resource != nil && o.local == claimNo && len(candidates) > 0 && f.excluded(o.asked, o.resource.groupVersion(), o.window) {
			return ExtensionVersion
		}
		return ExtensionNone
	}
	doc, ok := f.merged(o.op)
	truth := f.truthFor(o)
	union := f.union(truth, o.op.Path)
	if !ok || doc == nil || union == nil {
		return ExtensionNone
	}
	c := f.completeness(doc, o.op.Path, truth, union)
	switch {
	case len(c.surplus) == 0:
		return f.extensionOf(o, c.missing)
	case len(c.missing) == 0 && !slices.ContainsFunc(c.surplus, func(e element) bool { return !f.deleted(e.groupVersion(), o.op.Start) }):
		return ExtensionGone
	default:
		return ExtensionNone
	}
}

// aggregatedDistrusting reports whether the request is for an aggregated API, and the extension
// apiserver need not trust the front-proxy certificate of one of some servers, at any time in w.
func (f *Facts) aggregatedDistrusting(o *observation, some func(server string) bool, w window) bool {
	if !f.aggregated(groupVersion{o.op.GVR.Group, o.op.GVR.Version}) {
		return false
	}
	for l, faults := range f.faults {
		if some(l.from) && slices.ContainsFunc(faults, func(fault history.Fault) bool {
			return fault.Distrust == history.DistrustFrontProxy && window{fault.Start, fault.End}.overlaps(w)
		}) {
			return true
		}
	}
	return false
}

// deleted reports whether all definitions in a group version were deleted before a time, and there
// was one. A version that a definition has dropped is deleted too.
func (f *Facts) deleted(gv groupVersion, before history.Time) bool {
	of := func(e exclusion) bool { return e.groupVersion == gv && e.from <= before }
	return slices.ContainsFunc(f.exclusions, of) &&
		!slices.ContainsFunc(f.exclusions, func(e exclusion) bool { return of(e) && e.deleted > before })
}

// extensionOf is ExtensionVersion if there are elements, and all of them are in group versions that
// the asked server leaves out.
func (f *Facts) extensionOf(o *observation, elements []element) Extension {
	if len(elements) == 0 || slices.ContainsFunc(elements, func(e element) bool { return !f.excluded(o.asked, e.groupVersion(), o.window) }) {
		return ExtensionNone
	}
	return ExtensionVersion
}

// extensionBetween is the extension of a difference between the merged document that o got and
// another one.
func (f *Facts) extensionBetween(o *observation, other string) Extension {
	a, b := f.documents[o.op.Document], f.documents[other]
	if a == nil || b == nil || len(f.exclusions) == 0 {
		return ExtensionNone
	}
	return f.extensionOf(o, f.compared(a, b).differ)
}

// extensionOfOrder is ExtensionOrder if all groups would have their versions in order without those
// that the asked server leaves out of what it knows of its peers.
func (f *Facts) extensionOfOrder(o *observation, versions map[string][]string, groups []string) Extension {
	for _, group := range groups {
		others := slices.DeleteFunc(slices.Clone(versions[group]), func(v string) bool {
			return f.leftOut(o.asked, groupVersion{group, v}, o.window)
		})
		if len(others) == len(versions[group]) || !slices.IsSortedFunc(others, byPriority) {
			return ExtensionNone
		}
	}
	return ExtensionOrder
}
