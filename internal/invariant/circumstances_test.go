package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// A server is alone while no other server is up.
func TestSignaturesTellWhetherTheServerIsAlone(t *testing.T) {
	more := doc("more", line(widgets), line(gadgets), line(ghosts))
	cases := map[string]signed[string]{
		"all others have left":  {tell().stop("a", 20).stop("c", 22), "asked server: alone"},
		"one is left":           {tell().stop("a", 20), ""},
		"one came back":         {tell().stop("a", 20).stop("c", 22).start("c", 24, oldDoc), ""},
		"and is set up oddly":   {tell().stop("a", 20).stop("c", 22).setUp("b", "with the flags of kubeadm"), "asked server: alone; asked server: with the flags of kubeadm"},
		"another one is odd":    {tell().stop("a", 20).stop("c", 22).setUp("c", "with the flags of kubeadm"), "asked server: alone"},
		"one leaves afterwards": {tell().stop("a", 20).stop("c", 62), ""},
	}
	for _, c := range cases {
		c.story.discover(60, "b", "/apis", more)
	}
	checkSigned(t, "DiscoveryComplete", setupOf, cases)
}

// A 404 and a document come from what the server knows of its peers. It fetches that again if a
// connection ends, so it does not matter that connections end. It matters to other answers.
func TestEndsOfConnectionsDoNotMatterToKnowledge(t *testing.T) {
	for words, want := range map[string][2]string{ // for a 404, and for a 503
		"its request to connect anew switched on": {"", "asked server: its request to connect anew switched on"},
		"its serving certificate: rotated":        {"", "asked server: its serving certificate: rotated"},
		"its front-proxy certificate: rotated":    {"", "asked server: its front-proxy certificate: rotated"},
		"its front-proxy certificate: expired":    {"asked server: its front-proxy certificate: expired", "asked server: its front-proxy certificate: expired"},
		"its peer authority: stranger":            {"asked server: its peer authority: stranger", "asked server: its peer authority: stranger"},
		"its serving certificate: rotated, its peer authority: missing": {"asked server: its peer authority: missing",
			"asked server: its peer authority: missing; asked server: its serving certificate: rotated"},
	} {
		for i, c := range []struct {
			invariant string
			status    int
		}{{"NoFalseNotFound", 404}, {"Available", 503}} {
			if got := signatureOf(t, tell().setUp("b", words).ask(60, "b", gadgets, c.status), c.invariant).Setup; got != want[i] {
				t.Errorf("%s, %d: %q, want %q", words, c.status, got, want[i])
			}
		}
	}
}

// The setup of a process is known from its flags, even if nobody could look at their effect.
func TestSetupsAreKnownFromFlags(t *testing.T) {
	flags := func(s *story, incarnation int) *story {
		s.h.Configurations = append(s.h.Configurations, history.Configuration{Server: "b", Incarnation: incarnation, Setup: "with the flags of kubeadm"})
		return s
	}
	cases := map[string]signed[string]{
		"of this process":    {flags(tell(), 1), "asked server: with the flags of kubeadm"},
		"of another process": {flags(tell(), 2), ""},
		"and of its effect":  {flags(tell(), 1).setUp("b", "with the flags of kubeadm"), "asked server: with the flags of kubeadm"},
	}
	for _, c := range cases {
		c.story.ask(60, "b", gadgets, 404)
	}
	checkSigned(t, "NoFalseNotFound", setupOf, cases)
}

// If two documents differ, either server may be the one that is wrong. The signature tells what is
// unusual at either.
func TestSignaturesOfDifferencesAreAboutBothServers(t *testing.T) {
	differ := func(s *story) *story {
		return s.long().discover(60, "a", "/apis", mergedDoc).discover(60, "b", "/apis", doc("poor", line(widgets)))
	}
	for name, c := range map[string]struct {
		story     *story
		setup     string
		extension Extension
	}{
		"nothing unusual":       {differ(tell()), "", ExtensionNone},
		"a setup of the first":  {differ(tell().setUp("a", "with the flags of kubeadm")), "asked server: with the flags of kubeadm", ExtensionNone},
		"a setup of the second": {differ(tell().setUp("b", "with the flags of kubeadm")), "asked server: with the flags of kubeadm", ExtensionNone},
		"a setup of neither":    {differ(tell().setUp("c", "with the flags of kubeadm")), "", ExtensionNone},
		"a definition that one forgot": {differ(tell().define(20, "apps", "gizmos", "v2").define(22, "apps", "gizmos").
			stop("a", 24).start("a", 26, newDoc)), "", ExtensionVersion},
	} {
		if got := signatureOf(t, c.story, "DiscoveryDeterministic"); got.Setup != c.setup || got.Extension != c.extension {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.setup, c.extension)
		}
	}
}

// A document lists what was defined and deleted. If it lists anything else too much, or lacks
// something, the definitions do not explain it.
func TestSignaturesTellOfDeletedDefinitions(t *testing.T) {
	gizmos, gears := history.GVR{Group: "flows", Version: "v9", Resource: "gizmos"}, history.GVR{Group: "flows", Version: "v9", Resource: "gears"}
	deleted := func() *story { return tell().long().define(20, "flows", "gizmos", "v9").define(25, "flows", "gizmos") }
	with := func(more ...history.Resource) history.Document {
		return doc("with", append([]history.Resource{line(widgets), line(gadgets)}, more...)...)
	}
	checkSigned(t, "DiscoveryComplete", extensionOf, map[string]signed[Extension]{
		"it was deleted":              {deleted().discover(60, "b", "/apis", with(line(gizmos))), ExtensionGone},
		"another of its version":      {deleted().discover(60, "b", "/apis", with(line(gizmos), line(gears))), ExtensionGone},
		"something else too":          {deleted().discover(60, "b", "/apis", with(line(gizmos), line(ghosts))), ExtensionNone},
		"something is missing too":    {deleted().discover(60, "b", "/apis", doc("poor", line(widgets), line(gizmos))), ExtensionNone},
		"it is defined":               {tell().long().define(20, "flows", "gizmos", "v9").discover(60, "b", "/apis", with(line(gizmos))), ExtensionNone},
		"it is defined again":         {deleted().define(30, "flows", "gizmos", "v9").discover(60, "b", "/apis", with(line(gizmos))), ExtensionNone},
		"it is deleted later":         {tell().long().define(20, "flows", "gizmos", "v9").define(70, "flows", "gizmos").discover(60, "b", "/apis", with(line(gizmos))), ExtensionNone},
		"the version was dropped":     {tell().long().define(20, "flows", "gizmos", "v9").define(25, "flows", "gizmos", "v8").discover(60, "b", "/apis", with(line(gizmos))), ExtensionGone},
		"nothing was defined":         {tell().long().discover(60, "b", "/apis", with(line(gizmos))), ExtensionNone},
		"another version was deleted": {tell().long().define(20, "flows", "gizmos", "v8").define(25, "flows", "gizmos").discover(60, "b", "/apis", with(line(gizmos))), ExtensionNone},
	})
}
