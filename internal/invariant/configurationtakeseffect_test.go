package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// told starts the present process of a server with flags. Unless changed, its proxy is on and its
// address is "10.0.0.NAME:6443".
func (s *story) told(server string, change ...func(*history.Configuration)) *story {
	c := history.Configuration{
		Server: server, Incarnation: s.incarnation(server), Proxy: history.ProxyOwn, PeerCA: "ca.crt", PeerIP: "10.0.0." + server, PeerPort: "6443",
		AdvertiseIP: "10.0.0." + server, Port: "6443",
	}
	for _, l := range s.h.Lifecycle {
		if l.Server == server && l.Incarnation == c.Incarnation && l.State == history.StateStarting {
			c.At = l.At
		}
	}
	for _, ch := range change {
		ch(&c)
	}
	s.h.Configurations = append(s.h.Configurations, c)
	return s
}

// lease makes the endpoint lease of the present process say an address for some time. "" means no
// address.
func (s *story) lease(server string, from, to float64, address string) *story {
	s.h.Leases = append(s.h.Leases, history.Lease{Server: server, Incarnation: s.incarnation(server), First: sec(from), Last: sec(to), Advertised: address})
	return s
}

// reports makes the present process say at /version that it emulates a minor version.
func (s *story) reports(server, minor string) *story {
	for i := range s.h.Lifecycle {
		if l := &s.h.Lifecycle[i]; l.Server == server && l.Incarnation == s.incarnation(server) && l.State == history.StateReady {
			l.Version, l.Reports = "v1.37.1", minor
		}
	}
	return s
}

func off(c *history.Configuration) {
	c.Proxy, c.PeerCA, c.PeerIP, c.PeerPort, c.Setup = history.ProxyOff, "", "", "", "its proxy switched off"
}

func TestConfigurationTakesEffect(t *testing.T) {
	const name = configurationName
	own := func(s *story) *story { return s.hop("b", 0, 10, false) }
	passed := func(s *story) *story { return own(s).hop("a", 2, 8, true) }
	emulating := func(c *history.Configuration) { c.Emulates, c.Setup = "1.36", "emulating 1.36" }
	without := func(c *history.Configuration) { c.Without = []string{"apps/v2", "batch/v1"} }
	half := func(c *history.Configuration) {
		c.PeerIP, c.PeerPort, c.Setup = "10.9.9.9", "", "advertising an address and no port"
	}
	otherHalf := func(c *history.Configuration) {
		c.PeerIP, c.PeerPort, c.Setup = "", "6440", "advertising a port and no address"
	}
	fallback := func(c *history.Configuration) { c.PeerIP, c.PeerPort, c.Setup = "", "", "advertising nothing" }
	host := func(c *history.Configuration) { c.PeerIP, c.PeerPort, c.AdvertiseIP = "", "", "" }
	// b has its proxy on, and answers one request a second itself that only a can serve.
	silent := func(s *story, from, to float64) *story {
		for at := from; at <= to; at++ {
			own(s.ask(at, "b", gadgets, 404))
		}
		return s
	}
	began := func(change ...func(*history.Configuration)) *story { return tell(name).told("b", change...) }
	const address = "10.0.0.b:6443"
	restarted := func(at float64, state history.State) *story {
		return began().lease("b", 2, at-0.5, address).state("b", at, state).start("b", at+2, oldDoc)
	}
	paused := func() *story { return began().pause("b", 50, 90) }
	checkStories(t, name, []storyCase{
		{"nothing is known of flags", tell(name).lease("b", 2, 199, address), want{outcome: OutcomeInconclusive, reason: "does not say with which flags"}},
		{"the lease was not read", began(), want{outcome: OutcomeInconclusive, reason: "not exercised"}},

		{"the address that it was given", began().lease("b", 2, 199, address), want{outcome: OutcomePass, checked: 1}},
		{"another address", began().lease("b", 2, 199, "10.0.0.a:6443"),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "its lease contradicts --peer-advertise-ip", sentence: "b (v1, start 1) told its peers from 2s to 3m19s that it is at 10.0.0.a:6443"}},
		{"another port", began().lease("b", 2, 199, "10.0.0.b:6444"), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "--peer-advertise-port"}},
		{"no address at all", began().lease("b", 2, 199, ""), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no address in its lease"}},
		{"another address for some time", began().lease("b", 2, 50, address).lease("b", 51, 52, "10.0.0.a:6443").lease("b", 53, 199, address),
			want{outcome: OutcomeFail, checked: 3, violations: 1}},
		{"half an address is ignored", began(half).lease("b", 2, 199, address), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "--peer-advertise-ip", sentence: "advertising an address and no port"}},
		{"half an address is used", began(half).lease("b", 2, 199, "10.9.9.9:6443"), want{outcome: OutcomePass, checked: 1}},
		{"the other half is ignored", began(otherHalf).lease("b", 2, 199, address), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "--peer-advertise-port"}},
		{"half an address is refused", tell(name).stop("b", 20).state("b", 30, history.StateStarting).told("b", half).state("b", 31, history.StateStopping).state("b", 32, history.StateStopped),
			want{outcome: OutcomePass, checked: 1, fact: "refused to start with their flags: 1"}},
		{"it falls back to --advertise-address", began(fallback).lease("b", 2, 199, address), want{outcome: OutcomePass, checked: 1}},
		{"it falls back to something else", began(fallback).lease("b", 2, 199, "10.0.0.a:6443"), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "--advertise-address"}},
		{"it finds an address by itself", began(host).lease("b", 2, 199, "172.16.0.1:6443"), want{outcome: OutcomePass, checked: 1}},
		{"an unusual address, and the lease was not read", began(fallback).told("c").lease("c", 2, 199, "10.0.0.c:6443"),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "it was not seen whether --advertise-address had an effect on b (start 1)"}},

		// The lease appears only after some time.
		{"not yet", began().lease("b", 1, 10.9, "").lease("b", 11, 199, address), want{outcome: OutcomePass, checked: 1}},
		{"too late", began().lease("b", 1, 21, "").lease("b", 22, 199, address), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"a renewal that is late", began().lease("b", 2, 50, address).lease("b", 51, 60.9, "").lease("b", 62, 199, address), want{outcome: OutcomePass, checked: 2}},
		{"a lease that is missing for long", began().lease("b", 2, 50, address).lease("b", 51, 61, "").lease("b", 62, 199, address), want{outcome: OutcomeFail, checked: 3, violations: 1}},
		{"paused for longer than a lease lasts", paused().lease("b", 2, 60, address).lease("b", 66, 115, "").lease("b", 116, 199, address), want{outcome: OutcomePass, checked: 2}},
		{"it does not come back after a pause", paused().lease("b", 2, 60, address).lease("b", 66, 199, ""), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"cut off from etcd", began().cut("b", etcd, 50, 90).lease("b", 2, 49, address).lease("b", 66, 115, "").lease("b", 121, 199, address), want{outcome: OutcomePass, checked: 2}},
		{"cut off from etcd, and it does not come back", began().cut("b", etcd, 50, 90).lease("b", 66, 199, ""), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the lease of the earlier process", restarted(50, history.StateKilled).told("b", func(c *history.Configuration) { c.PeerIP = "10.0.0.x" }).
			lease("b", 53, 54, address).lease("b", 55, 199, "10.0.0.x:6443"), want{outcome: OutcomePass, checked: 2}},
		{"the lease of the earlier process remains too long", restarted(50, history.StateKilled).told("b", func(c *history.Configuration) { c.PeerIP = "10.0.0.x" }).
			lease("b", 53, 199, address), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"two share one host name, and the address is of one of them", began().told("c", func(c *history.Configuration) { c.SharesHost = "b" }).lease("b", 2, 99, address).lease("b", 100, 199, "10.0.0.c:6443").lease("c", 2, 199, address),
			want{outcome: OutcomePass, checked: 3}},
		{"two share one host name, and the address is of neither", began().told("c", func(c *history.Configuration) { c.SharesHost = "b" }).lease("b", 2, 199, "10.0.0.a:6443"),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},

		// The feature is switched off.
		{"off, and it has no address", began(off).lease("b", 2, 199, ""), want{outcome: OutcomePass, checked: 1}},
		{"off, and it has an address", began(off).lease("b", 2, 199, address), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "an address in its lease, with the feature off", sentence: "its proxy switched off"}},
		{"off, and the address of the earlier process is still there", restarted(50, history.StateKilled).told("b", off).lease("b", 53, 64, address).lease("b", 65, 199, ""), want{outcome: OutcomePass, checked: 2}},
		{"off, and the address of the earlier process remains too long", restarted(50, history.StateKilled).told("b", off).lease("b", 53, 199, address), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"off, and it answers itself", own(began(off).ask(20, "b", gadgets, 404)), want{outcome: OutcomePass, checked: 1}},
		{"off, and it passes on", passed(began(off).ask(20, "b", gadgets, 200)), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "b passed it on to a, though the feature is switched off in b"}},
		{"off, and a peer passes on", passed(began(off).told("c", off).ask(20, "b", gadgets, 404)).hop("a", 2, 8, true, passedBy("c")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "in b"}},
		{"off, and discovery is its own", began(off).discover(20, "b", "/apis", doc("own", line(widgets))), want{outcome: OutcomePass, checked: 1}},
		{"off, and discovery is merged", began(off).discover(20, "b", "/apis", mergedDoc), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "merged discovery with the feature off"}},
		{"off, and nothing shows it", began(off).told("c").lease("c", 2, 199, "10.0.0.c:6443"), want{outcome: OutcomeInconclusive, checked: 1, reason: "whether --feature-gates had an effect on b (start 1)"}},

		// The feature is switched on.
		{"on, and it passes on", passed(began().ask(20, "b", gadgets, 200)), want{outcome: OutcomePass, checked: 1}},
		{"on, and it passes nothing on", silent(began(), 20, 60), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passes nothing on", sentence: "answered 41 requests itself"}},
		{"on, and it was not asked often enough", silent(began(), 20, 38), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"on, and it passes on late", passed(silent(began(), 20, 60).ask(100, "b", gadgets, 200)), want{outcome: OutcomePass, checked: 1}},
		{"on, and the link was cut once", silent(began().cut("b", "a", 12, 14), 20, 60), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"on, and the peer was cut off from etcd", silent(began().cut("a", etcd, 12, 14), 20, 60), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"on, and the peer has just begun to serve it", silent(blank(name).start("b", 0, oldDoc).told("b").start("a", 28, newDoc), 20, 50), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"on, and only subresources are asked for", func() *story {
			s := began()
			for at := 20.0; at < 60; at++ {
				own(s.ask(at, "b", pods, 404, func(o *history.Operation) { o.Subresource = "resize" }))
			}
			return s
		}(), want{outcome: OutcomeInconclusive, reason: "not exercised"}},

		// The server emulates a version, or serves without some group versions.
		{"it emulates what it should", began(emulating).reports("b", "1.36"), want{outcome: OutcomePass, checked: 1}},
		{"it emulates nothing", began(emulating).reports("b", "1.37"), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another version at /version", sentence: "emulates 1.37, and should emulate 1.36"}},
		{"it does not say what it emulates", began(emulating).lease("b", 2, 199, address), want{outcome: OutcomeInconclusive, checked: 1, reason: "whether --emulated-version had an effect on b (start 1)"}},
		{"it emulates something unasked", began().reports("b", "1.36"), want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "should emulate 1.37"}},
		{"it is itself", began().reports("b", "1.37"), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"it does not serve what is switched off", began(without), want{outcome: OutcomePass, checked: 1}},
		{"it serves what is switched off", tell(name).told("a", without), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "switched off in its own discovery", sentence: "served apps/v2, which --runtime-config switches off"}},
	})
}

// If no effect of a setup was seen, the scenario proves nothing about the consequences of the
// setup.
func TestASetupThatWasNotSeenVoidsWhatTheScenarioIsAbout(t *testing.T) {
	half := func(c *history.Configuration) {
		c.PeerIP, c.PeerPort, c.Setup = "10.9.9.9", "", "advertising an address and no port"
	}
	const about = "NoFalseNotFound"
	const reason = "it was not seen whether --peer-advertise-ip had an effect on a (start 1)"
	unseen := func() *story { return tell(about).told("a", half).askEvery(20, 60, "b", gadgets, 200) }
	checkStories(t, about, []storyCase{
		{"nobody looked", unseen(), want{outcome: OutcomeInconclusive, reason: reason, checked: 41}},
		{"somebody looked", unseen().lease("a", 2, 199, "10.0.0.a:6443"), want{outcome: OutcomePass, checked: 41}},
		{"what is wrong is wrong", unseen().ask(70, "b", gadgets, 404), want{outcome: OutcomeFail, checked: 42, violations: 1}},
		{"it is in an older history", tell(about).askEvery(20, 60, "b", gadgets, 200), want{outcome: OutcomePass, checked: 41}},
	})
}
