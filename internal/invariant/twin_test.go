package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// TestSignaturesTellTwins tells of a and b, which have one host name. Only a serves gadgets. After
// the end of b, peers know a again when its lease is there again, or by 70 s at the latest.
func TestSignaturesTellTwins(t *testing.T) {
	const denied, incomplete = "NoFalseNotFound", "DiscoveryComplete"
	ofA := func(c *history.Configuration) { c.SharesHost = "a" }
	twins := func() *story { return tell().told("a").told("b", ofA).told("c") }
	parted := func() *story { return twins().stop("b", 49).start("b", 51, oldDoc).told("b") }
	deny := func(s *story, server string, at float64) *story {
		return s.ask(at, server, gadgets, 404).hop(server, 0, 9, false)
	}
	poorer := doc("poorer", line(pods))
	for name, c := range map[string]struct {
		invariant string
		story     *story
		want      Twin
	}{
		"the asked server is one":               {denied, deny(twins(), "b", 60), TwinAsked},
		"both serve it not, and a third does":   {denied, deny(twins().served("a", 2, oldDoc).served("c", 2, newDoc), "b", 60), TwinNone},
		"a third serves it, too":                {denied, deny(twins().served("c", 2, newDoc), "b", 60), TwinNone},
		"the asked server serves it itself":     {denied, deny(twins(), "a", 60), TwinNone},
		"another server is asked":               {denied, deny(twins(), "c", 60), TwinServing},
		"no log says who answered":              {denied, twins().ask(60, "c", gadgets, 404), TwinServing},
		"another server is asked, and b has it": {denied, deny(twins().served("b", 2, newDoc), "c", 60), TwinNone},
		"it is passed on to the wrong one":      {denied, deny(twins(), "c", 60).hop("b", 1, 8, true), TwinTarget},
		"it is passed on to the right one":      {denied, deny(twins(), "c", 60).hop("a", 1, 8, true), TwinNone},
		"it is passed on to a third":            {denied, deny(twins(), "b", 60).hop("c", 1, 8, true), TwinNone},
		"all have their own names":              {denied, deny(tell().told("a").told("b").told("c"), "c", 60), TwinNone},
		"before that":                           {denied, deny(tell().told("a").told("c").stop("b", 69).start("b", 71, oldDoc).told("b", ofA), "c", 60), TwinNone},
		"the lease is not there again":          {denied, deny(parted().lease("a", 50, 80, "").lease("a", 81, 199, "10.0.0.a:6443"), "c", 67), TwinServing},
		"the lease was not read":                {denied, deny(parted(), "c", 67), TwinServing},
		"it must be there again":                {denied, deny(parted(), "c", 71), TwinNone},
		"it is there again":                     {denied, deny(parted().lease("a", 50, 55, "").lease("a", 56, 199, "10.0.0.a:6443"), "c", 67), TwinNone},
		"the server that was one is asked":      {denied, deny(parted(), "b", 67), TwinServing},
		"the link to it is cut":                 {"UnavailableOnPeerFailure", deny(twins().cut("b", "a", 50, 80), "b", 60), TwinAsked},
		"discovery of the one":                  {incomplete, twins().discover(60, "b", "/apis", oldDoc), TwinAsked},
		"discovery of a third":                  {incomplete, twins().discover(60, "c", "/apis", oldDoc), TwinServing},
		"discovery lacks more":                  {incomplete, twins().discover(60, "c", "/apis", poorer), TwinNone},
		"discovery has too much":                {incomplete, twins().discover(60, "c", "/apis", doc("odd", line(widgets), line(ghosts))), TwinNone},
	} {
		if got := signatureOf(t, c.story, c.invariant).Twin; got != c.want {
			t.Errorf("%s: %q, want the twin %q", name, got, c.want)
		}
	}
}

// TestAConfigurationTellsTwins is about the lease of a, and about what b passes on.
func TestAConfigurationTellsTwins(t *testing.T) {
	ofA := func(c *history.Configuration) { c.SharesHost = "a" }
	twins := func() *story { return tell(configurationName).told("a").told("b", ofA) }
	parted := func(from, to float64) *story {
		return twins().stop("b", 49).start("b", 51, oldDoc).told("b").lease("a", from, to, "").lease("a", to+1, 199, "10.0.0.a:6443")
	}
	silent := func(s *story, server string) *story {
		for at := 20.0; at < 60; at++ {
			s.ask(at, server, gadgets, 404).hop(server, 0, 9, false)
		}
		return s
	}
	checkSigned(t, configurationName, func(s Signature) Twin { return s.Twin }, map[string]signed[Twin]{
		"its lease is gone with the other one":    {parted(51, 63), TwinAsked},
		"its lease is gone later":                 {parted(80, 95), TwinNone},
		"its twin gets nothing":                   {silent(twins(), "b"), TwinAsked},
		"a third could have got it":               {silent(twins().served("c", 2, newDoc), "b"), TwinNone},
		"another server passes nothing on either": {silent(twins().told("c"), "c"), TwinNone},
	})
}
