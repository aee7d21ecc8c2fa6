package requestlog

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestUnlike(t *testing.T) {
	for name, c := range map[string]struct {
		before, after requested
		want          string
	}{
		"the same": {requested{verb: "list", uri: "/api/v1/pods?limit=5"},
			requested{verb: "list", uri: "/api/v1/pods?limit=5"}, ""},
		"sorted": {requested{uri: "/api/v1/pods?watch=1&limit=5"}, requested{uri: "/api/v1/pods?limit=5&watch=1"},
			""},
		"encoded anew": {requested{uri: "/api/v1/pods?labelSelector=a=b,c%20d&x"},
			requested{uri: "/api/v1/pods?labelSelector=a%3Db%2Cc+d&x="}, ""},
		"without a part that cannot be parsed": {requested{uri: "/api/v1/pods?limit=5&%zz"}, requested{uri: "/api/v1/pods?limit=5"}, ""},
		"another encoding of the path": {requested{uri: "/apis/a/v1/namespaces/x/ys/system%3Az"},
			requested{uri: "/apis/a/v1/namespaces/x/ys/system:z"}, ""},
		"another verb": {requested{verb: "list", uri: "/api/v1/pods"}, requested{verb: "get", uri: "/api/v1/pods"},
			"verb: get rather than list"},
		"another path": {requested{uri: "/api/v1/pods/x?limit=5"}, requested{uri: "/api/v1/pods?limit=5"},
			"path: /api/v1/pods rather than /api/v1/pods/x"},
		"a name of two parts becomes two": {requested{uri: "/api/v1/pods/x%2Fy"}, requested{uri: "/api/v1/pods/x/y"},
			"path: /api/v1/pods/x/y rather than /api/v1/pods/x%2Fy"},
		"another slash": {requested{uri: "/api/v1/pods"}, requested{uri: "/api/v1/pods/"},
			"path: /api/v1/pods/ rather than /api/v1/pods"},
		"a parameter is lost": {requested{uri: "/api/v1/pods?dryRun=All&limit=5"}, requested{uri: "/api/v1/pods?limit=5"},
			"query: without dryRun=All"},
		"a value is lost": {requested{uri: "/api/v1/pods?x=1&x=2"}, requested{uri: "/api/v1/pods?x=2"},
			"query: x=2 rather than x=1&x=2"},
		"the order of values": {requested{uri: "/api/v1/pods?x=1&x=2"}, requested{uri: "/api/v1/pods?x=2&x=1"},
			"query: x=2&x=1 rather than x=1&x=2"},
		"a parameter is added": {requested{uri: "/api/v1/pods"}, requested{uri: "/api/v1/pods?timeout=9s"},
			"query: with timeout=9s"},
		"a value that is encoded twice": {requested{uri: "/api/v1/pods?x=a%2Fb"}, requested{uri: "/api/v1/pods?x=a%252Fb"},
			"query: x=a%252Fb rather than x=a%2Fb"},
		"a watch becomes a list": {requested{verb: "watch", uri: "/api/v1/pods?watch=1"},
			requested{verb: "list", uri: "/api/v1/pods"}, "verb and query: list rather than watch, without watch=1"},
		"a record that does not say":            {requested{verb: "list", uri: "/api/v1/pods"}, requested{}, ""},
		"a record that cannot be read as a URI": {requested{uri: "/api/v1/pods"}, requested{uri: "pods"}, ""},
	} {
		t.Run(name, func(t *testing.T) { compare(t, c.want, c.after.unlike(c.before)) })
	}
}

func TestContrasted(t *testing.T) {
	sent := func(uri string) handled { return handled{Hop: hop("b", 0, 10, false), requested: requested{uri: uri}} }
	passed := func(uri, altered string) handled {
		p := handled{Hop: hop("a", 2, 8, true), requested: requested{uri: uri}}
		p.Altered = altered
		return p
	}
	other := func(p handled) handled {
		p.Operation = "x2"
		return p
	}
	const full, short, lost = "/api/v1/pods?limit=5", "/api/v1/pods", "query: without limit=5"
	for name, all := range map[string][]handled{
		"as it was sent":                         {sent(full), passed(full, "")},
		"altered":                                {sent(full), passed(short, lost)},
		"the peer's log comes first":             {passed(short, lost), sent(full)},
		"altered at the second attempt":          {sent(full), passed(full, ""), passed(short, lost)},
		"altered when it was sent again":         {sent(full), passed(full, ""), sent(full), passed(short, lost)},
		"the asked server's record is lost":      {passed(short, "")},
		"another request":                        {sent(full), other(sent(short)), other(passed(short, "")), passed(full, "")},
		"two requests of one ID":                 {sent(short), sent(full), passed(full, ""), passed(short, "")},
		"sent to two servers, which is not ours": {sent(full), sent(short)},
	} {
		t.Run(name, func(t *testing.T) {
			told := slices.Clone(all)
			for i := range told {
				entry := *told[i].Entry
				entry.Altered = ""
				told[i].Entry = &entry
			}
			markAltered(told)
			compare(t, all, told)
		})
	}
}

// Two kube-apiservers log one request. The request to the second lacks a part of the request to the
// first.
func TestHopsSayWhatWasAlteredOnTheWay(t *testing.T) {
	all := accounts(t, "a", "b")
	requested := strings.NewReplacer("/api/v1/pods", `/api/v1/pods?limit=5`)
	peer := strings.NewReplacer(`["198.18.0.5"]`, `["198.18.0.5","198.18.0.10"]`)
	write(t, all[1].Audit, requested.Replace(received), requested.Replace(complete))
	write(t, all[0].Audit, peer.Replace(received), peer.Replace(complete))
	got, err := hopsOf(all, epoch)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, []history.Hop{told("a", 1000, 1250, true, "query: without limit=5"), told("b", 1000, 1250, false, "")}, got)
}

// told returns a hop of the request of these tests, as in an audit log.
func told(server string, from, to int, rerouted bool, altered string) history.Hop {
	h := hop(server, from, to, rerouted)
	h.Status, h.Altered, h.Groups, h.Client = 503, altered, noGroups, address
	return h
}

// On kind a peer has the same address as the clients. An audit record has this address only once.
func TestHopsKnowThatClientsSendARequestToOneServer(t *testing.T) {
	all := accounts(t, "a", "b")
	requested := strings.NewReplacer("/api/v1/pods", `/api/v1/pods?limit=5`)
	peer := strings.NewReplacer("10:00:01.000000Z", "10:00:01.001000Z", "10:00:01.250000Z", "10:00:01.240000Z")
	write(t, all[0].Audit, peer.Replace(received), peer.Replace(complete))
	write(t, all[1].Audit, requested.Replace(received), requested.Replace(complete))
	got, err := hopsOf(all, epoch)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, []history.Hop{told("a", 1001, 1240, true, "query: without limit=5"), told("b", 1000, 1250, false, "")}, got)
}
