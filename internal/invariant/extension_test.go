package invariant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// define adds a step that defines a resource in these versions; without versions it deletes it.
func (s *story) define(at float64, group, resource string, versions ...string) *story {
	s.step("define", at, at)
	s.h.Steps[len(s.h.Steps)-1].Defined = &history.Definition{Group: group, Resource: resource, Versions: versions}
	return s
}

// aggregated makes the latest step define an aggregated API.
func aggregated(s *story) *story {
	s.h.Steps[len(s.h.Steps)-1].Defined.Aggregated = true
	return s
}

// refused makes the latest step one that the control plane refused.
func (s *story) refused() *story {
	s.h.Steps[len(s.h.Steps)-1].Refused = "its names are taken"
	return s
}

// deleteLease adds a step that deletes the identity lease of a server.
func (s *story) deleteLease(at float64, server string) *story {
	s.step("delete a lease", at, at)
	s.h.Steps[len(s.h.Steps)-1].LeaseOf = server
	return s
}

// long makes the story end later.
func (s *story) long() *story {
	s.h.End.At = sec(2000)
	return s
}

// Only server a has apps/v2 built in, with gadgets. Server b answers 404 to requests for gadgets.
// The signature names the extension only if a definition may be the reason.
func TestSignaturesSayWhetherADefinitionIsInTheGroupVersion(t *testing.T) {
	old := func() *story { return tell().long().runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3") }
	gizmos := func() *story { return old().define(40, "apps", "gizmos", "v2", "v9") }
	custom := history.GVR{Group: "flows", Version: "v9", Resource: "gizmos"}
	noted := doc("noted", line(pods, "status"), line(widgets), line(custom))
	checkSigned(t, "NoFalseNotFound", func(s Signature) Extension {
		if core := s.Core(); core.Extension != ExtensionNone {
			t.Errorf("Core must leave the extension out: %+v", core)
		}
		return s.Extension
	}, map[string]signed[Extension]{
		"none":                             {old().ask(60, "b", gadgets, 404), ExtensionNone},
		"one in it":                        {gizmos().ask(60, "b", gadgets, 404), ExtensionVersion},
		"of the resource itself":           {old().define(40, "apps", "gadgets", "v2").ask(60, "b", gadgets, 404), ExtensionVersion},
		"later":                            {gizmos().ask(30, "b", gadgets, 404), ExtensionNone},
		"in another version":               {old().define(40, "apps", "gizmos", "v9").ask(60, "b", gadgets, 404), ExtensionNone},
		"in another group":                 {old().define(40, "batch", "gizmos", "v2").ask(60, "b", gadgets, 404), ExtensionNone},
		"a step without a definition":      {old().step("restart c", 40, 40).ask(60, "b", gadgets, 404), ExtensionNone},
		"the server serves it itself":      {gizmos().ask(60, "a", gadgets, 404), ExtensionNone},
		"deleted":                          {gizmos().define(50, "apps", "gizmos").ask(340, "b", gadgets, 404), ExtensionVersion},
		"deleted long ago":                 {gizmos().define(50, "apps", "gizmos").ask(380, "b", gadgets, 404), ExtensionNone},
		"the version dropped long ago":     {gizmos().define(50, "apps", "gizmos", "v9").ask(380, "b", gadgets, 404), ExtensionNone},
		"deleted, and another is there":    {gizmos().define(45, "apps", "gears", "v2").define(50, "apps", "gizmos").ask(380, "b", gadgets, 404), ExtensionVersion},
		"deleted and defined again":        {gizmos().define(50, "apps", "gizmos").define(60, "apps", "gizmos", "v2").ask(900, "b", gadgets, 404), ExtensionVersion},
		"deleted, and restarted":           {gizmos().define(50, "apps", "gizmos").stop("b", 80).start("b", 82, oldDoc).runs("b", "v1.36.3").ask(120, "b", gadgets, 404), ExtensionNone},
		"restarted while it is there":      {gizmos().stop("b", 80).start("b", 82, oldDoc).runs("b", "v1.36.3").ask(120, "b", gadgets, 404), ExtensionVersion},
		"refused, since its names are not": {old().define(40, "apps", "gizmos", "v2").refused().ask(60, "b", gadgets, 404), ExtensionVersion},
		"a refused change": {
			old().define(40, "apps", "gizmos", "v9").define(45, "apps", "gizmos", "v2").refused().ask(60, "b", gadgets, 404), ExtensionNone,
		},
		"the second deletion waits for another look": {
			gizmos().define(45, "apps", "gears", "v1").define(46, "apps", "gears").define(50, "apps", "gizmos").ask(380, "b", gadgets, 404), ExtensionVersion,
		},
		"a plain custom resource, in no built-in group version": {
			tell().long().runs("a", "v1.37.1").runs("b", "v1.36.3").define(40, "flows", "gizmos", "v9").served("a", 41, noted).ask(90, "b", custom, 404), ExtensionNone,
		},
	})
}

// Server a serves an aggregated API. If the API does not accept the front-proxy certificate of any
// server, all servers may answer 503.
func TestSignaturesTellOfAggregatedAPIsThatDistrustAServer(t *testing.T) {
	const serving, frontProxy = history.DistrustServing, history.DistrustFrontProxy
	defined := func() *story { return aggregated(tell().long().define(20, "apps", "gadgets", "v2")) }
	cases := map[string]signed[Extension]{
		"another server":            {defined().distrust(frontProxy, "b", "c", 50, 80), ExtensionDistrusts},
		"the asked server":          {defined().distrust(frontProxy, "a", "c", 50, 80), ExtensionDistrusts},
		"until just before":         {defined().distrust(frontProxy, "b", "c", 40, 55), ExtensionDistrusts},
		"until long before":         {defined().distrust(frontProxy, "b", "c", 30, 45), ExtensionNone},
		"only afterwards":           {defined().distrust(frontProxy, "b", "c", 75, 80), ExtensionNone},
		"no server":                 {defined(), ExtensionNone},
		"its serving certificate":   {defined().distrust(serving, "b", "c", 50, 80), ExtensionNone},
		"a cut":                     {defined().cut("b", "c", 50, 80), ExtensionNone},
		"a custom resource":         {tell().long().define(20, "apps", "gadgets", "v2").distrust(frontProxy, "b", "c", 50, 80), ExtensionNone},
		"an API in another version": {aggregated(tell().long().define(20, "apps", "gadgets", "v9")).distrust(frontProxy, "b", "c", 50, 80), ExtensionNone},
		"an API in another group":   {aggregated(tell().long().define(20, "batch", "gadgets", "v2")).distrust(frontProxy, "b", "c", 50, 80), ExtensionNone},
	}
	for _, c := range cases {
		c.story.ask(60, "a", gadgets, 503)
	}
	checkSigned(t, "Available", func(s Signature) Extension {
		if says := s.Extension == ExtensionDistrusts; says != strings.Contains(s.String(), "of an aggregated API that distrusts a server") {
			t.Errorf("the signature reads %q", s)
		}
		return s.Extension
	}, cases)
}

func TestSignaturesSayWhetherADefinitionExplainsADocument(t *testing.T) {
	defined := func() *story { return tell().define(20, "apps", "gizmos", "v2") }
	poor := doc("poor", line(widgets))                 // lacks what is beside gizmos
	poorer := doc("poorer")                            // lacks more
	rich := doc("rich", line(widgets), line(ghosts))   // lists what is not served as well
	other := doc("other", line(gadgets), line(ghosts)) // differs in more than that
	for name, c := range map[string]struct {
		invariant string
		story     *story
		want      Extension
	}{
		"lacks it":                   {"DiscoveryComplete", defined().discover(60, "b", "/apis", poor), ExtensionVersion},
		"nothing was defined":        {"DiscoveryComplete", tell().discover(60, "b", "/apis", poor), ExtensionNone},
		"lacks more":                 {"DiscoveryComplete", defined().discover(60, "b", "/apis", poorer), ExtensionNone},
		"lists too much as well":     {"DiscoveryComplete", defined().discover(60, "b", "/apis", rich), ExtensionNone},
		"differs":                    {"DiscoveryDeterministic", defined().discover(60, "a", "/apis", mergedDoc).discover(61, "b", "/apis", poor), ExtensionVersion},
		"the other one differs":      {"DiscoveryDeterministic", defined().discover(60, "b", "/apis", poor).discover(61, "a", "/apis", mergedDoc), ExtensionVersion},
		"differs in more":            {"DiscoveryDeterministic", defined().discover(60, "b", "/apis", poor).discover(61, "a", "/apis", other), ExtensionNone},
		"differs, nothing defined":   {"DiscoveryDeterministic", tell().discover(60, "a", "/apis", mergedDoc).discover(61, "b", "/apis", poor), ExtensionNone},
		"is still not right":         {"Converges", defined().discover(90, "b", "/apis", poor), ExtensionVersion},
		"is still not right by more": {"Converges", defined().discover(90, "b", "/apis", poorer), ExtensionNone},
	} {
		if got := signatureOf(t, c.story, c.invariant).Extension; got != c.want {
			t.Errorf("%s: the extension is %q, want %q", name, got, c.want)
		}
	}
}

// If an administrator deletes the identity lease of a server, the other servers do not know the
// server until it has written the lease again (10 s) and they had the time to learn of that.
func TestDeletedLeases(t *testing.T) {
	for name, c := range map[string]struct {
		story *story
		want  Outcome
	}{
		"no lease was deleted":              {tell().ask(45, "b", gadgets, 404), OutcomeFail},
		"asked while there is no lease":     {tell().deleteLease(40, "a").ask(45, "b", gadgets, 404), OutcomeInconclusive},
		"asked before it was deleted":       {tell().deleteLease(40, "a").ask(38, "b", gadgets, 404), OutcomeFail},
		"asked once the others know it":     {tell().deleteLease(40, "a").ask(61, "b", gadgets, 404), OutcomeFail},
		"the lease of another was deleted":  {tell().deleteLease(40, "c").ask(45, "b", gadgets, 404), OutcomeFail},
		"the lease of the asked server was": {tell().deleteLease(40, "b").ask(45, "b", gadgets, 404), OutcomeFail},
		"it serves what it serves itself":   {tell().deleteLease(40, "a").ask(45, "a", gadgets, 404), OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			if v := verdictOf(t, c.story.h, "NoFalseNotFound"); v.Outcome != c.want {
				t.Errorf("%s (%s), want %s", v.Outcome, v.Reason, c.want)
			}
		})
	}
	v := verdictOf(t, tell().deleteLease(40, "a").discover(47, "b", "/apis", doc("poor", line(widgets))).h, "DiscoveryComplete")
	if v.Outcome != OutcomeInconclusive {
		t.Errorf("a document while there is no lease: %s", v.Outcome)
	}
	checkSigned(t, "NoFalseNotFound", func(s Signature) Change { return s.Change }, map[string]signed[Change]{
		"deleted":         {tell().deleteLease(40, "c").cut("b", "a", 30, 70).ask(60, "b", gadgets, 404), ChangeLease},
		"of the peer":     {tell().deleteLease(40, "a").cut("b", "a", 30, 80).ask(70, "b", gadgets, 404), ChangeLease},
		"long ago":        {tell().deleteLease(40, "c").cut("b", "a", 90, 120).ask(85, "b", gadgets, 200).ask(110, "b", gadgets, 404), ChangeNone},
		"after a restart": {tell().stop("c", 33).start("c", 35, oldDoc).deleteLease(40, "c").cut("b", "a", 30, 70).ask(60, "b", gadgets, 404), ChangeOther},
	})
}

// A kube-apiserver lists a custom resource in another version of a group that it has built in, and
// answers 404 for it. That is no false 404 of a proxy, and it is not held against discovery either.
// Every other 404 for a custom resource is.
func TestACustomResourceBesideBuiltInVersions(t *testing.T) {
	custom := history.GVR{Group: "apps", Version: "v9", Resource: "gizmos"}
	another := history.GVR{Group: "apps", Version: "v9", Resource: "native"}
	lists := func(group string, also ...history.Resource) history.Document {
		of := custom
		of.Group = group
		return doc("with "+group+fmt.Sprint(len(also)), append([]history.Resource{line(pods, "status"), line(widgets), line(of)}, also...)...)
	}
	// All servers list the custom resource from 41s on; b is asked at 90s.
	with := func(d history.Document, defined func(*story)) *story {
		s := tell("NoFalseNotFound", "DiscoveryAccessible")
		defined(s)
		for _, server := range []string{"a", "b", "c"} {
			s.served(server, 41, d)
		}
		return s.discover(80, "b", "/apis", d)
	}
	plain := func(s *story) { s.define(40, "apps", "gizmos", "v9") }
	own := custom
	own.Group = "flows"
	checkWrong(t, map[string]signed[bool]{
		"a custom resource":                   {with(lists("apps"), plain).ask(90, "b", custom, 404), false},
		"nobody has defined it":               {with(lists("apps"), func(*story) {}).ask(90, "b", custom, 404), true},
		"another resource is defined":         {with(lists("apps"), func(s *story) { s.define(40, "apps", "gears", "v9") }).ask(90, "b", custom, 404), true},
		"defined in another version":          {with(lists("apps"), func(s *story) { s.define(40, "apps", "gizmos", "v8") }).ask(90, "b", custom, 404), true},
		"an aggregated API":                   {with(lists("apps"), func(s *story) { plain(s); s.h.Steps[0].Defined.Aggregated = true }).ask(90, "b", custom, 404), true},
		"the version is built in, too":        {with(lists("apps", line(another)), plain).ask(90, "b", custom, 404), true},
		"no version of its group is built in": {with(lists("flows"), func(s *story) { s.define(40, "flows", "gizmos", "v9") }).ask(90, "b", own, 404), true},
		"a built-in resource of the group":    {with(lists("apps"), plain).ask(90, "b", widgets, 404), true},
		"the version was built in before": {with(lists("apps"), func(s *story) {
			plain(s)
			s.served("b", 20, doc("before", line(pods, "status"), line(widgets), line(custom)))
		}).ask(90, "b", custom, 404), true},
		"in another process": {with(lists("apps"), func(s *story) {
			plain(s)
			s.served("b", 20, doc("before", line(pods, "status"), line(widgets), line(custom))).stop("b", 25).start("b", 27, oldDoc)
		}).ask(90, "b", custom, 404), false},
		"another error for the custom resource":       {with(lists("apps"), plain).ask(90, "b", custom, 503), false},
		"the same of a server that has only this one": {with(lists("apps"), plain).served("b", 42, doc("alone", line(pods, "status"), line(custom))).ask(90, "b", custom, 404), true},
	}, "NoFalseNotFound", "DiscoveryAccessible")
}

// A server that does not serve the aggregated API itself answers 503 for other reasons.
func TestSignaturesOfAggregatedAPIsAreAboutServersThatServeThem(t *testing.T) {
	s := aggregated(tell().long().define(20, "apps", "gadgets", "v2")).distrust(history.DistrustFrontProxy, "c", "a", 50, 80)
	if got := signatureOf(t, s.ask(60, "b", gadgets, 503), "Available"); got.Extension == ExtensionDistrusts {
		t.Errorf("%+v, want a violation without this extension", got)
	}
}

// Server b goes on to list a group version after its only definition was deleted. If b knows of the
// deletion, b has the group version built in. Nobody can know this before, so neither a 200 nor a
// 404 is wrong. Otherwise b lists only a custom resource that it cannot serve.
func TestAVersionThatOutlastsItsDefinition(t *testing.T) {
	custom := history.GVR{Group: "apps", Version: "v9", Resource: "gizmos"}
	lists := doc("lists it", line(pods, "status"), line(widgets), line(custom))
	defined := func() *story { return tell().define(20, "apps", "gizmos", "v9").served("b", 21, lists) }
	deleted := func() *story { return defined().define(40, "apps", "gizmos") }
	for name, c := range map[string]struct {
		story *story
		known bool
	}{
		"it knows of the deletion":       {deleted(), true},
		"it is still defined":            {defined(), false},
		"it is deleted only afterwards":  {defined().define(100, "apps", "gizmos"), true},
		"it lists it until it knows":     {deleted().served("b", 49, oldDoc), false},
		"it is defined again":            {deleted().define(45, "apps", "gizmos", "v9"), false},
		"another is defined there":       {defined().define(30, "apps", "gears", "v9").define(40, "apps", "gizmos"), false},
		"another one was, for some time": {deleted().define(45, "apps", "gears", "v9").define(47, "apps", "gears"), true},
		"etcd is out of reach":           {deleted().cut("b", "etcd", 39, 300), false},
		"etcd is in reach again":         {deleted().cut("b", "etcd", 39, 60), true},
		"and it lists it until it knows": {deleted().cut("b", "etcd", 39, 60).served("b", 64, oldDoc), false},
		"and it is defined again":        {deleted().cut("b", "etcd", 39, 60).define(64, "apps", "gizmos", "v9"), false},
		"and it is deleted again":        {deleted().cut("b", "etcd", 39, 60).define(55, "apps", "gizmos", "v9").define(61, "apps", "gizmos").served("b", 66, oldDoc), false},
		"and it starts again":            {deleted().cut("b", "etcd", 39, 60).stop("b", 62).start("b", 64, oldDoc), false},
		"etcd is in reach for a moment":  {deleted().cut("b", "etcd", 39, 60).cut("b", "etcd", 64, 300), false},
		"etcd is when the run ends":      {deleted().cut("b", "etcd", 39, 198), false},
		"etcd was out of reach before":   {deleted().cut("b", "etcd", 32, 43).served("b", 48, oldDoc), false},
		"etcd is when it is deleted":     {deleted().cut("b", "etcd", 22, 40), true},
		"etcd was long before":           {deleted().cut("b", "etcd", 22, 25), true},
		"etcd is, of another server":     {deleted().cut("c", "etcd", 39, 60), true},
	} {
		h := c.story.ask(43, "b", custom, 404).ask(44, "c", custom, 200).h
		if v := verdictOf(t, h, "NoFalseNotFound"); v.Violations > 0 {
			t.Errorf("%s: the 404 is called false: %+v", name, v.Evidence)
		}
		if v := verdictOf(t, h, "TrueNotFound"); (v.Violations > 0) == c.known {
			t.Errorf("%s: the 200 is called wrong %d times, and b is known to serve it: %t", name, v.Violations, c.known)
		}
	}
}

// Server c has a resource built in. From 41s on, b lists a custom resource of that name and cannot
// serve it. Its 404 is false until then.
func TestA404WhileACustomResourceIsDefined(t *testing.T) {
	custom := history.GVR{Group: "apps", Version: "v9", Resource: "gizmos"}
	with := doc("with", line(pods, "status"), line(widgets), line(custom))
	for at, wrong := range map[float64]bool{40.5: true, 40.95: false, 41.5: false, 90: false} {
		s := tell().served("c", 20, with).define(41, "apps", "gizmos", "v9").served("b", 41, with).ask(at, "b", custom, 404)
		if v := verdictOf(t, s.h, "NoFalseNotFound"); (v.Violations > 0) != wrong {
			t.Errorf("at %gs: %d violations, want some: %t", at, v.Violations, wrong)
		}
	}
}

// Server a lists a custom resource that it cannot serve. Every merged document lists it, so a 404
// of another server is not held against discovery, unless some server can serve it.
func TestACustomResourceThatAPeerListsInVain(t *testing.T) {
	custom := history.GVR{Group: "apps", Version: "v9", Resource: "gizmos"}
	inVain := doc("in vain", line(pods, "status"), line(widgets), line(gadgets), line(custom))
	alone := doc("alone", line(pods, "status"), line(custom))
	merged := doc("merged too", line(widgets), line(gadgets), line(custom))
	with := func(more func(*story)) *story {
		s := tell("DiscoveryAccessible").define(40, "apps", "gizmos", "v9").served("a", 41, inVain)
		more(s)
		return s.discover(80, "b", "/apis", merged).ask(90, "b", custom, 404)
	}
	checkWrong(t, map[string]signed[bool]{
		"only a lists it":           {with(func(*story) {}), false},
		"another server serves it":  {with(func(s *story) { s.served("c", 41, alone) }), true},
		"another one is not known":  {with(func(s *story) { s.served("c", 41, alone).stop("c", 88) }), false},
		"the asked server lists it": {with(func(s *story) { s.served("b", 41, alone) }), true},
		"nobody lists it any more":  {with(func(s *story) { s.served("a", 60, newDoc) }), true},
	}, "DiscoveryAccessible")
}

// Only server a has gadgets with a status built in. If b serves a custom resource of that name, its
// 404 for the status says nothing about the gadgets of a.
func TestASubresourceOfANamesake(t *testing.T) {
	native := doc("native", line(pods, "status", "resize"), line(widgets), line(gadgets, "status"))
	own := doc("own", line(pods, "status"), line(widgets), line(gadgets))
	with := func(defined func(*story)) *story {
		s := blank("NoFalseNotFound").start("a", 0, native).start("b", 0, oldDoc).start("c", 0, oldDoc)
		s.h.End = history.End{At: sec(200), Complete: true}
		defined(s)
		return s
	}
	named := func(versions ...string) func(*story) {
		return func(s *story) { s.define(40, "apps", "gadgets", versions...).served("b", 41, own) }
	}
	gone := func(s *story) { named("v2")(s); s.define(60, "apps", "gadgets").served("b", 61, oldDoc) }
	checkWrong(t, map[string]signed[bool]{
		"while it is there":             {with(named("v2")).ask(80, "b", gadgets, 404, sub("status")), false},
		"just deleted":                  {with(gone).ask(68, "b", gadgets, 404, sub("status")), false},
		"deleted for longer":            {with(gone).ask(90, "b", gadgets, 404, sub("status")), true},
		"before it was defined":         {with(named("v2")).ask(30, "b", gadgets, 404, sub("status")), true},
		"at a server that does not":     {with(named("v2")).ask(80, "c", gadgets, 404, sub("status")), true},
		"nothing was defined":           {with(func(s *story) { s.served("b", 41, own) }).ask(80, "b", gadgets, 404, sub("status")), true},
		"another version was defined":   {with(named("v9")).ask(80, "b", gadgets, 404, sub("status")), true},
		"an aggregated API":             {with(func(s *story) { named("v2")(s); s.h.Steps[0].Defined.Aggregated = true }).ask(80, "b", gadgets, 404, sub("status")), true},
		"the server has it built in":    {with(named("v2")).served("b", 42, doc("built in", line(widgets), line(gadgets, "scale"))).ask(80, "b", gadgets, 404, sub("status")), true},
		"a subresource of another kind": {with(named("v2")).ask(80, "b", pods, 404, sub("resize")), true},
	}, "NoFalseNotFound")
}

// A server advertises where others find it. How it finds others does not depend on that. The
// authorities that it trusts, and the front-proxy certificate that it shows, matter to the peers
// that it calls, and not to those that call it.
func TestSetupsMatterToOneOfTwoServers(t *testing.T) {
	for _, c := range []struct{ words, ofServing, ofAsked string }{
		{"advertising an address at which nobody listens", "serving server: advertising an address at which nobody listens", ""},
		{"its peer authority: stranger", "", "asked server: its peer authority: stranger"},
		{"its front-proxy certificate: stranger", "", "asked server: its front-proxy certificate: stranger"},
	} {
		for server, want := range map[string]string{"a": c.ofServing, "b": c.ofAsked} {
			if got := signatureOf(t, tell().setUp(server, c.words).ask(60, "b", gadgets, 404), "NoFalseNotFound").Setup; got != want {
				t.Errorf("%s, of %s: %q, want %q", c.words, server, got, want)
			}
		}
	}
}

// How a server stops matters only while it stops.
func TestDelaysOfAStopMatterWhileTheServerStops(t *testing.T) {
	for _, words := range []string{"serving for 7s after it was told to stop", "waiting up to 5s for watches when it is told to stop"} {
		for name, c := range map[string]struct {
			story *story
			want  string
		}{
			"it runs":                              {tell(), ""},
			"it stops":                             {tell().state("a", 60.1, history.StateStopping), "serving server: " + words},
			"another one stops":                    {tell().state("c", 60.1, history.StateStopping), ""},
			"it stops soon":                        {tell().state("a", 70, history.StateStopping), ""},
			"it runs, and the asked one distrusts": {tell().setUp("b", "its peer authority: stranger"), "asked server: its peer authority: stranger"},
		} {
			if got := signatureOf(t, c.story.setUp("a", words).ask(60, "b", gadgets, 404), "NoFalseNotFound").Setup; got != c.want {
				t.Errorf("%s, %s: %q, want %q", words, name, got, c.want)
			}
		}
	}
}

// A server that waits for an address from which no answer comes learns nothing meanwhile. This
// explains an answer for as long as the connection and the next fetch take, and no longer.
func TestAConnectionWithoutAnAnswerHasALateEffect(t *testing.T) {
	wrong := func(detail string) *story { // until a restarts with another address, and is ready at 32s
		s := tell().fault(history.FaultMisconfiguration, "b", "a", 15, 30, true).stop("a", 30).start("a", 31, newDoc).runs("a", "v1")
		s.h.Faults[0].Detail = detail
		return s
	}
	stays := func() *story { // only the fault ends
		s := tell().fault(history.FaultMisconfiguration, "b", "a", 15, 30, true)
		s.h.Faults[0].Detail = history.DetailUnroutable
		return s
	}
	for name, c := range map[string]struct {
		story *story
		at    float64
		want  Obstacle
	}{
		"soon":                            {wrong(history.DetailUnroutable), 50, ObstacleConfiguration},
		"after the timeout":               {wrong(history.DetailUnroutable), 64, ObstacleConfiguration},
		"long after it":                   {wrong(history.DetailUnroutable), 74, ObstacleNone},
		"while the lease lasted":          {stays(), 84, ObstacleConfiguration},
		"long after the lease":            {stays(), 87, ObstacleNone},
		"an address of nobody, soon":      {wrong("nobody listens at the address advertised"), 50, ObstacleConfiguration},
		"an address of nobody":            {wrong("nobody listens at the address advertised"), 64, ObstacleNone},
		"of another server, after it too": {tell().fault(history.FaultMisconfiguration, "b", "c", 15, 30, true), 64, ObstacleNone},
	} {
		s := c.story.ask(c.at-2, "b", gadgets, 200).ask(c.at, "b", gadgets, 404)
		if got := signatureOf(t, s, "NoFalseNotFound").Before; got != c.want {
			t.Errorf("%s: %q, want before %q", name, got, c.want)
		}
	}
}

// The versions of a definition may be in the wrong place. All other versions must be in order.
func TestSignaturesSayWhetherADefinitionIsInTheWrongPlace(t *testing.T) {
	late := doc("late", inGroup("flows", "v1beta1", "v9", "v1alpha1")...)
	reversed := doc("reversed", inGroup("flows", "v1alpha1", "v1beta1", "v9")...)
	two := doc("two", append(inGroup("flows", "v1beta1", "v9"), inGroup("batch", "v1beta1", "v1")...)...)
	checkSigned(t, "VersionOrder", extensionOf, map[string]signed[Extension]{
		"of the version in the wrong place":  {tell().define(20, "flows", "gizmos", "v9").discover(60, "b", "/apis", late), ExtensionOrder},
		"deleted shortly before":             {tell().long().define(20, "flows", "gizmos", "v9").define(40, "flows", "gizmos").discover(60, "b", "/apis", late), ExtensionOrder},
		"deleted long ago":                   {tell().long().define(20, "flows", "gizmos", "v9").define(40, "flows", "gizmos").discover(500, "b", "/apis", late), ExtensionNone},
		"none":                               {tell().discover(60, "b", "/apis", late), ExtensionNone},
		"of another version":                 {tell().define(20, "flows", "gizmos", "v2").discover(60, "b", "/apis", late), ExtensionNone},
		"of one that is in its place":        {tell().define(20, "flows", "gizmos", "v1alpha1").discover(60, "b", "/apis", late), ExtensionNone},
		"of the same version elsewhere":      {tell().define(20, "batch", "gizmos", "v9").discover(60, "b", "/apis", late), ExtensionNone},
		"the others are in the wrong order":  {tell().define(20, "flows", "gizmos", "v9").discover(60, "b", "/apis", reversed), ExtensionNone},
		"another group is in a wrong order":  {tell().define(20, "flows", "gizmos", "v9").discover(60, "b", "/apis", two), ExtensionNone},
		"which has a definition of its own":  {tell().define(20, "flows", "gizmos", "v9").define(20, "batch", "gizmos", "v1").discover(60, "b", "/apis", two), ExtensionOrder},
		"later than the document was listed": {tell().define(90, "flows", "gizmos", "v9").discover(60, "b", "/apis", late), ExtensionNone},
	})
}
