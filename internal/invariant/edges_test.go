package invariant

import (
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// A document of the load shows what a controller's document lacked if the two were at most alike
// apart, and did not overlap. Both bounds are judged from both sides.
func TestHowNearADocumentOfTheLoadMustBe(t *testing.T) {
	const asked, took = 50.0, 10 * time.Millisecond
	from, to := sec(asked), sec(asked)+took
	for name, c := range map[string]struct {
		start, end history.Time
		near       bool
	}{
		"long before":      {from - alike - took, from - alike - 1, false},
		"just before":      {from - alike - took, from - alike, true},
		"it ended then":    {from - took, from, true},
		"it went on":       {from - took, from + 1, false},
		"it began before":  {to - 1, to + took, false},
		"it began then":    {to, to + took, true},
		"soon after":       {to + alike - 1, to + alike + took, true},
		"at the last":      {to + alike, to + alike + took, true},
		"too long after":   {to + alike + 1, to + alike + took, false},
		"around all of it": {from - 1, to + 1, false},
	} {
		s := tell("OrphansCollected").runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").
			put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o").
			discovers(asked, "b", collector, func(q *history.Request) { q.Start, q.End = from, to }).
			discover(asked, "b", "/apis", without, func(o *history.Operation) { o.Start, o.End = c.start, c.end })
		if e := verdictOf(t, s.h, "OrphansCollected").Evidence[0]; (e.Misled != nil) != c.near {
			t.Errorf("%s: %+v, want an answer that is named %t", name, e.Misled, c.near)
		}
	}
}

// A 404 denies a resource if it is for that resource in any version, for its group, or for the
// group version of the object. The garbage collector may ask for another version than the owner's.
func TestWhich404sDenyAResource(t *testing.T) {
	about := func(version, resource string) history.GVR {
		return history.GVR{Group: gadgets.Group, Version: version, Resource: resource}
	}
	for gvr, denies := range map[history.GVR]bool{
		gadgets: true, about("v1", gadgets.Resource): true, about("", gadgets.Resource): true,
		about(gadgets.Version, ""): true, about("v1", ""): false, about("", ""): true,
		about(gadgets.Version, "others"): false, {Group: "other", Version: gadgets.Version, Resource: gadgets.Resource}: false, {}: false,
	} {
		s := tell("OrphansCollected").put(40, gadget("o")).put(41, configMap("x", gadget("o"))).remove(60, "o").
			request(50, "b", collector, "get", gvr, "", "", 404)
		if e := verdictOf(t, s.h, "OrphansCollected").Evidence[0]; (e.Misled != nil) != denies {
			t.Errorf("404 for %+v: %+v, want it named %t", gvr, e.Misled, denies)
		}
	}
}

// The sentence about a lease says what the server was given, and only for a server whose feature is
// off that it is off.
func TestWhatALeaseContradictsIsSaid(t *testing.T) {
	const name, off = configurationName, "though the feature is switched off"
	for _, c := range []struct {
		proxyOff       bool
		address, wants string
	}{
		{false, "10.0.0.a:6443", "at 10.0.0.a:6443, though it was given --peer-advertise-ip: 10.0.0.b"},
		{false, "10.0.0.b:6444", "at 10.0.0.b:6444, though it was given --peer-advertise-port: port 6443"},
		{false, "", "at no address, though it was given --peer-advertise-ip: 10.0.0.b"},
		{true, "10.0.0.b:6443", "at 10.0.0.b:6443, " + off},
	} {
		s := tell(name).told("b", func(f *history.Configuration) {
			if c.proxyOff {
				f.Proxy, f.PeerCA, f.PeerIP, f.PeerPort = history.ProxyOff, "", "", ""
			}
		}).lease("b", 2, 199, c.address)
		v := verdictOf(t, s.h, name)
		if len(v.Evidence) != 1 || !strings.Contains(v.Evidence[0].Sentence, c.wants) || strings.Contains(v.Evidence[0].Sentence, off) != c.proxyOff {
			t.Errorf("%q: %+v, want %q", c.address, v.Evidence, c.wants)
		}
	}
}

// A server that passes an answer back has ended no earlier than its peer: at the same moment
// counts.
func TestAnswersThatEndAtTheSameMomentAreRelayed(t *testing.T) {
	created := answering(201)
	for peerEnds, want := range map[int]Outcome{7: OutcomePass, 8: OutcomePass, 9: OutcomeFail} {
		s := tell("WritesOnce").ask(20, "b", gadgets, 201, verb("create")).hop("b", 0, 8, false, created).hop("a", 2, peerEnds, true, created)
		if v := verdictOf(t, s.h, "WritesOnce"); v.Outcome != want {
			t.Errorf("the peer ends after %d ms: %+v, want %s", peerEnds, v, want)
		}
	}
}
