package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

const configurationName = "ConfigurationTakesEffect"

// configurationTakesEffect compares flags with their visible effects. OnlyTrustedPeers checks
// certificates and authorities.
var configurationTakesEffect = Invariant{
	Name:  configurationName,
	Grade: GradeCore,
	Sentence: "An apiserver does what its flags say, or refuses to start: it advertises the given address, passes requests on if " +
		"and only if the feature is on, emulates the given version, and does not serve APIs that are switched off.",
	Source: "KEP-4020 and Kubernetes' documentation of the Mixed Version Proxy: UnknownVersionInteroperabilityProxy, --peer-ca-file, " +
		"--peer-advertise-ip, --peer-advertise-port, --advertise-address; KEP-4330: --emulated-version; --runtime-config",
	judge: judgeConfigurationTakesEffect,
}

// passesNothingOn is the number of requests for resources that only peers serve that a server must
// have answered itself, without any obstacle. After that many it is certain that the server passes
// nothing on.
const passesNothingOn = 20

func judgeConfigurationTakesEffect(f *Facts) *tally {
	t := newTimedTally(f)
	refused := 0
	for _, s := range f.settingsInOrder() {
		switch {
		case s.refused && s.Setup != "":
			refused++
			t.rule(nil, rulingRight)
		case s.refused:
		default:
			t.ruleLeases(s)
			t.ruleVersion(s)
			t.ruleSwitchedOff(s)
		}
	}
	unforwarded := map[*setting][]*observation{}
	passing := map[*setting]bool{}
	for _, o := range f.observations {
		t.ruleOff(o)
		f.recordCrossing(o, unforwarded, passing)
	}
	for _, s := range f.settingsInOrder() {
		t.ruleOn(s, unforwarded[s], passing[s])
	}
	t.fact("processes whose flags are known", len(f.settings))
	t.fact("processes that refused to start with their flags", refused)
	if len(f.settings) == 0 {
		t.doubt("the history does not say with which flags servers were started")
	}
	t.doubts = append(t.doubts, f.unseenSettings()...)
	return t
}

// contradict counts a violation by a process whose behaviour contradicts its flags.
func (t *tally) contradict(s *setting, at history.Time, wrong, cause, sentence string) {
	size := 0
	if s.Setup != "" {
		size = 1
	}
	b := breach{
		Signature: Signature{Mechanism: MechanismConfiguration, Setup: t.facts.setupOf(s), Wrong: wrong, Twin: s.twinAt(at)},
		asked:     s.Server, at: at, cause: cause, size: size,
	}
	t.violation(b, func() Evidence {
		return Evidence{Sentence: fmt.Sprintf("%s %s.", s, sentence)}
	})
}

// setupOf says in the words of a signature what is unusual about a process.
func (f *Facts) setupOf(s *setting) string {
	var all []string
	if old := generation(s.version); old != "" {
		all = append(all, "asked server: "+old)
	}
	if slices.ContainsFunc(s.ready, f.withdrawnIn) {
		all = append(all, withoutDiscovery)
	}
	for _, what := range f.unusual(s.Setup) {
		all = append(all, "asked server: "+what)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// ruleLeases rules on each address that the endpoint lease of a process contained. A lease may be
// missing for as long as peers may not know of a change, because a late renewal says nothing about
// the flags.
func (t *tally) ruleLeases(s *setting) {
	for _, l := range s.leases {
		w, ok := t.facts.held(s, l)
		if !ok {
			continue
		}
		flag, want := s.wrongAddress(l.Advertised)
		if flag == "" {
			t.rule(nil, rulingRight)
			continue
		}
		if l.Advertised == "" && w.to-w.from < t.facts.bounds.Staleness {
			t.rule(nil, rulingTolerated)
			continue
		}
		t.rule(nil, rulingWrong)
		wrong := "its lease contradicts " + flag
		switch {
		case flag == flagGate:
			wrong = "an address in its lease, with the feature off"
		case l.Advertised == "":
			wrong = "no address in its lease"
		}
		told := "it was given " + flag + ": " + want
		if flag == flagGate {
			told = "the feature is switched off"
		}
		t.contradict(s, w.from, wrong, wrong, fmt.Sprintf("told its peers from %s to %s that it is at %s, though %s",
			clock(l.First), clock(l.Last), cmp.Or(l.Advertised, "no address"), told))
	}
}

// ruleVersion rules on the version that a process said it emulates.
func (t *tally) ruleVersion(s *setting) {
	switch want := s.emulates(); {
	case s.reports == "" || want == "" || len(s.ready) == 0:
	case s.reports == want && s.Emulates != "":
		t.rule(nil, rulingRight)
	case s.reports != want:
		t.rule(nil, rulingWrong)
		const wrong = "another version at /version than it is to emulate"
		t.contradict(s, s.ready[0].from, wrong, wrong,
			fmt.Sprintf("said at /version that it emulates %s, and should emulate %s", s.reports, want))
	}
}

// ruleSwitchedOff rules on each document of a process in which group versions are switched off.
func (t *tally) ruleSwitchedOff(s *setting) {
	if len(s.Without) == 0 {
		return
	}
	var last *document
	for _, piece := range s.server.served {
		if piece.incarnation != s.Incarnation || piece.doc == nil || piece.doc == last {
			continue
		}
		last = piece.doc
		served := slices.DeleteFunc(slices.Clone(s.Without), func(groupVersion string) bool {
			return !slices.ContainsFunc(piece.doc.Resources, func(r history.Resource) bool {
				return strings.TrimPrefix(r.Group+"/"+r.Version, "/") == groupVersion
			})
		})
		if len(served) == 0 {
			t.rule(nil, rulingRight)
			continue
		}
		t.rule(nil, rulingWrong)
		const wrong = "a group version that is switched off in its own discovery"
		t.contradict(s, piece.from, wrong, wrong, fmt.Sprintf("served %s, which %s switches off", strings.Join(served, ", "), flagWithout))
	}
}

// ruleOff rules on the behaviour of servers whose proxy is switched off. Such a server must pass
// nothing on, and must list only resources of its own.
func (t *tally) ruleOff(o *observation) {
	f := t.facts
	paths := [][]string(nil)
	if !o.shared {
		paths, _ = f.chains(o)
	}
	for i, path := range paths {
		if len(path) < 2 {
			continue
		}
		by := f.byName[path[len(path)-2]]
		if by == nil {
			continue
		}
		if s := f.settingAt(by, window{o.op.Start, o.hops[i].Start}); s != nil && s.Proxy == history.ProxyOff {
			cause := fmt.Sprintf("%s passed it on to %s, though the feature is switched off in %s", by.name, path[len(path)-1], by.name)
			t.ruleHops(rulingWrong, o, withStatus, "passed on with the feature off", cause, cause)
			return
		}
	}
	s := f.settingAt(o.asked, o.window)
	if s == nil || s.Proxy != history.ProxyOff || !f.showsOff(o) {
		return
	}
	if doc, ok := f.merged(o.op); ok && doc != nil {
		has := o.asked.servedAt(o.op.Start).doc.resources()
		i := slices.IndexFunc(doc.Resources, func(r history.Resource) bool { return !has[r.GVR] })
		if i < 0 {
			t.rule(nil, rulingRight)
			return
		}
		t.rule(nil, rulingWrong)
		const wrong = "merged discovery with the feature off"
		t.violate(o, *o.situation, wrong, wrong,
			fmt.Sprintf("listed %s, which it does not serve itself, with the feature switched off", doc.Resources[i].GVR))
		return
	}
	t.rule(nil, rulingRight)
}

// recordCrossing notes two kinds of events on a server with the feature on. In the first, the
// server passed a request on. In the second, the server answered a request itself that it had to
// pass on, although no obstacle ever prevented it from doing so.
func (f *Facts) recordCrossing(o *observation, unforwarded map[*setting][]*observation, passing map[*setting]bool) {
	s := f.settingAt(o.asked, o.window)
	switch {
	case s == nil || s.Proxy == history.ProxyOff || s.Proxy == history.ProxyUnknown || o.shared:
	case o.forwarded():
		passing[s] = true
	case !o.skewed() || !routed(o.op) || o.op.Rerouted || o.op.GVR.Resource == "" || len(o.hops) == 0:
	case o.op.Subresource != "" && f.resource(key{GVR: o.op.GVR}).during(o.asked, o.window).claim != claimNo:
	case o.op.Start < later(o.readySince, f.bounds.Staleness):
	case slices.ContainsFunc(o.capable, func(p peer) bool { return f.free(s, p, o) }):
		unforwarded[s] = append(unforwarded[s], o)
	}
}

// free reports whether a server had every opportunity to learn what a peer serves, and to reach the
// peer.
func (f *Facts) free(s *setting, p peer, o *observation) bool {
	life := window{later(min(s.ready[0].from, p.since), -f.bounds.Convergence), o.op.End}
	return o.op.Start >= later(p.since, f.bounds.Staleness) && len(f.linkFaults(link{s.Server, p.server.name}, life)) == 0 &&
		len(f.linkFaults(link{s.Server, etcd}, life)) == 0 && len(f.linkFaults(link{p.server.name, etcd}, life)) == 0 &&
		!slices.ContainsFunc(p.server.line, func(sp span) bool { return sp.phase == phasePaused && sp.overlaps(life) })
}

// ruleOn rules on a process whose proxy is on. It must pass at least one request on if it is asked
// for resources that only peers serve.
func (t *tally) ruleOn(s *setting, unforwarded []*observation, passing bool) {
	switch {
	case passing:
		t.rule(nil, rulingRight)
	case len(unforwarded) >= passesNothingOn:
		t.rule(nil, rulingWrong)
		const wrong = "passes nothing on with the feature on"
		first := unforwarded[0]
		b := breach{
			Signature: Signature{Mechanism: MechanismConfiguration, Setup: t.facts.setupOf(s), Wrong: wrong},
			asked:     s.Server, at: first.op.End, cause: wrong,
		}
		if !slices.ContainsFunc(unforwarded, func(o *observation) bool { return !t.facts.takesForItself(o) }) {
			b.Twin = TwinAsked
		}
		t.violation(b, func() Evidence {
			e := t.facts.show(first, *first.situation, answer(first.op))
			e.Sentence = fmt.Sprintf("%s answered %s itself for what only peers serve, and passed none on, though the feature is on and nothing "+
				"was in the way; the first: %s", s, counted(len(unforwarded), "request"), e.Sentence)
			return e
		})
	}
}
