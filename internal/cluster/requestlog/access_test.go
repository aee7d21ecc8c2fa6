package requestlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/sidecar"
)

const ms = time.Millisecond

// line returns a record of request x1 in an access log. from and to are in ms after the epoch.
func line(t *testing.T, from, to int, change func(*sidecar.AccessRecord)) string {
	t.Helper()
	r := sidecar.AccessRecord{
		AuditID: "x1", Start: epoch.Add(time.Duration(from) * ms), End: epoch.Add(time.Duration(to) * ms),
		Method: "GET", Verb: "list", Path: "/api/v1/pods", User: "jane", Decision: "local", Status: 200,
	}
	if change != nil {
		change(&r)
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func hop(server string, from, to int, rerouted bool) history.Hop {
	return history.Hop{Operation: "x1", Start: time.Duration(from) * ms, End: time.Duration(to) * ms,
		Entry: &history.Entry{Server: server, Status: 200, User: "jane", Rerouted: rerouted}}
}

func compare[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(handled{}, requested{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func hopsOf(servers []Logs, epoch time.Time) ([]history.Hop, error) {
	records, err := Read(servers, epoch)
	return records.Hops(), err
}

func TestAccessed(t *testing.T) {
	forwarded := line(t, 1, 9, func(r *sidecar.AccessRecord) { r.Decision, r.Peer = "forward", "apiserver-x" })
	rerouted := line(t, 2, 8, func(r *sidecar.AccessRecord) { r.FromPeer, r.Rerouted = true, true })
	listed := requested{verb: "list", uri: "/api/v1/pods", withoutQuery: true}
	for name, c := range map[string]struct {
		log  []string
		want []handled
	}{
		"passed on":                {[]string{forwarded}, []handled{{Hop: hop("b", 1, 9, false), requested: listed, peer: "apiserver-x"}}},
		"passed on by a peer":      {[]string{rerouted}, []handled{{Hop: hop("b", 2, 8, true), requested: listed}}},
		"a last line is cut short": {[]string{rerouted, forwarded[:30]}, []handled{{Hop: hop("b", 2, 8, true), requested: listed}}},
		"and the next process continues": {
			[]string{rerouted, rerouted[:len(rerouted)/2] + forwarded, rerouted},
			[]handled{{Hop: hop("b", 2, 8, true), requested: listed}, {Hop: hop("b", 1, 9, false), requested: listed, peer: "apiserver-x"},
				{Hop: hop("b", 2, 8, true), requested: listed}},
		},
		"a last line lacks its end only": {
			[]string{rerouted + forwarded, rerouted},
			[]handled{{Hop: hop("b", 2, 8, true), requested: listed}, {Hop: hop("b", 1, 9, false), requested: listed, peer: "apiserver-x"},
				{Hop: hop("b", 2, 8, true), requested: listed}},
		},
		"a clock that was turned back": {[]string{line(t, 5, 3, nil)}, []handled{{Hop: hop("b", 5, 5, false), requested: listed}}},
		"nothing":                      {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAccessLog(strings.NewReader(strings.Join(c.log, "\n")), "b", epoch)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c.want, got)
		})
	}
	_, err := readAccessLog(strings.NewReader(forwarded+"\nnonsense\n"+forwarded), "b", epoch)
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a log that is broken in the middle: %v, want an error about line 2", err)
	}
}

func TestMergeCountsARequestOnceEachTimeItIsHandled(t *testing.T) {
	at := func(from, to int) handled { return handled{Hop: hop("b", from, to, false)} }
	for name, c := range map[string]struct {
		access []handled
		audit  []handled
		want   []handled
	}{
		"served behind the sidecar":    {[]handled{at(1, 9)}, []handled{at(2, 8)}, []handled{at(1, 9)}},
		"passed on to a peer":          {[]handled{at(1, 9)}, nil, []handled{at(1, 9)}},
		"the sidecar was killed at it": {nil, []handled{at(2, 2)}, []handled{at(2, 2)}},
		"without a sidecar":            {nil, []handled{at(2, 8), at(3, 7)}, []handled{at(2, 8), at(3, 7)}},
		"sent again by the client": {[]handled{at(1, 4), at(5, 9)}, []handled{at(2, 3), at(6, 8)},
			[]handled{at(1, 4), at(5, 9)}},
		"sent again while the first was under way": {[]handled{at(1, 9), at(2, 8)}, []handled{at(3, 7), at(4, 6)},
			[]handled{at(1, 9), at(2, 8)}},
		"sent again after the sidecar was killed":     {[]handled{at(5, 9)}, []handled{at(2, 2), at(6, 8)}, []handled{at(5, 9), at(2, 2)}},
		"and killed when it was sent again":           {[]handled{at(1, 4)}, []handled{at(2, 3), at(6, 6)}, []handled{at(1, 4), at(6, 6)}},
		"the client went away before it was taken up": {[]handled{at(1, 4)}, []handled{at(6, 8)}, []handled{at(1, 4)}},
		"it outlasts a client that went away":         {[]handled{at(1, 4)}, []handled{at(2, 8)}, []handled{at(1, 4)}},
		"tried twice behind the sidecar":              {[]handled{at(1, 9)}, []handled{at(2, 2), at(4, 8)}, []handled{at(1, 9)}},
		"the order of the records does not matter": {[]handled{at(5, 9), at(1, 4)}, []handled{at(6, 8), at(2, 3)},
			[]handled{at(5, 9), at(1, 4)}},
		"the same moment, cut down to microseconds": {[]handled{{Hop: history.Hop{Operation: "x1", Start: ms + 900, End: 2 * ms,
			Entry: &history.Entry{Server: "b", User: "jane"}}}}, []handled{at(1, 2)},
			[]handled{{Hop: history.Hop{Operation: "x1", Start: ms + 900, End: 2 * ms, Entry: &history.Entry{Server: "b", User: "jane"}}}}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, c.want, merge(c.access, c.audit)) })
	}
}

// A sidecar passes an impersonation on, and logs the sender. The kube-apiserver knows for whom the
// sender acts.
func TestMergeKnowsTheImpersonatedUser(t *testing.T) {
	of := func(from, to int, user, groups string, impersonated bool) handled {
		h := handled{Hop: hop("b", from, to, false), impersonated: impersonated}
		h.User, h.Groups = user, groups
		return h
	}
	got := merge([]handled{of(1, 9, "admin", "", false)}, []handled{of(2, 8, "joe", "readers", true)})
	compare(t, []handled{of(1, 9, "joe", "readers", false)}, got)
	got = merge([]handled{of(1, 9, "admin", "", false)}, []handled{of(2, 8, "joe", "readers", false)}) // another user without an impersonation is a defect
	compare(t, []handled{of(1, 9, "admin", "", false)}, got)
}

func TestMergeKnowsTheQueryFromTheKubeAPIServer(t *testing.T) {
	door := requested{verb: "list", uri: "/api/v1/pods", withoutQuery: true}
	behind := requested{verb: "list", uri: "/api/v1/pods?limit=5"}
	again := requested{verb: "list", uri: "/api/v1/pods?limit=5&continue=x"}
	at := func(from, to int, what requested) handled {
		return handled{Hop: hop("b", from, to, true), requested: what}
	}
	compare(t, []handled{at(1, 9, behind), at(11, 19, door)},
		merge([]handled{at(1, 9, door), at(11, 19, door)}, []handled{at(2, 3, behind), at(4, 8, again)}))
}

// If the kube-apiserver and the sidecar saw different users, the groups that the kube-apiserver
// recorded are not those of the sidecar's user.
func TestMergeKnowsTheUserFromTheKubeAPIServer(t *testing.T) {
	told := func(user string) handled {
		p := handled{Hop: hop("b", 2, 8, true)}
		p.User, p.Groups, p.UID, p.Extra = user, "g", "u", "x"
		return p
	}
	whole := told("jane")
	whole.Start, whole.End = ms, 9*ms
	door := handled{Hop: hop("b", 1, 9, true)}
	compare(t, []handled{whole}, merge([]handled{door}, []handled{told("jane")}))
	compare(t, []handled{door}, merge([]handled{door}, []handled{told("somebody-else")}))
	// A sidecar does not learn the user of every token. Then a 401, for example of an aggregated
	// API, looks to the sidecar as if the token was invalid.
	unlearnt := door
	unlearnt.User, unlearnt.Status, unlearnt.Unauthenticated = "", 401, notAuthenticated
	known := whole
	known.Status = 401
	compare(t, []handled{known}, merge([]handled{unlearnt}, []handled{told("jane")}))
	nobody := told("")
	nobody.Groups, nobody.UID, nobody.Extra, nobody.Unauthenticated = "", "", "", "invalid bearer token"
	refused := unlearnt
	refused.Unauthenticated = "invalid bearer token"
	compare(t, []handled{refused}, merge([]handled{unlearnt}, []handled{nobody}))
}

func TestSettle(t *testing.T) {
	names := map[string]string{"apiserver-a": "a", "apiserver-b": "b", "apiserver-c": "c"}
	passed := func(h history.Hop, answered string) handled { return handled{Hop: h, peer: answered} }
	for name, c := range map[string]struct {
		all  []handled
		want []history.Hop
	}{
		"an answer that was passed on before its end was written down": {
			[]handled{passed(hop("b", 0, 10, false), "apiserver-a"), passed(hop("a", 2, 11, true), "")},
			[]history.Hop{hop("b", 0, 10, false), hop("a", 2, 10, true)},
		},
		"twice": {
			[]handled{passed(hop("a", 2, 12, true), ""), passed(hop("c", 1, 11, true), "apiserver-a"),
				passed(hop("b", 0, 10, false), "apiserver-c")},
			[]history.Hop{hop("a", 2, 10, true), hop("c", 1, 10, true), hop("b", 0, 10, false)},
		},
		"a peer is still busy with an abandoned attempt": {
			[]handled{passed(hop("b", 0, 10, false), "apiserver-a"), passed(hop("c", 1, 500, true), ""), passed(hop("a", 5, 9, true), "")},
			[]history.Hop{hop("b", 0, 10, false), hop("c", 1, 500, true), hop("a", 5, 9, true)},
		},
		"a request that the client itself sent": {
			[]handled{passed(hop("b", 0, 10, false), "apiserver-a"), passed(hop("a", 2, 11, false), "")},
			[]history.Hop{hop("b", 0, 10, false), hop("a", 2, 11, false)},
		},
		"a later request": {
			[]handled{passed(hop("b", 0, 10, false), "apiserver-a"), passed(hop("a", 12, 14, true), "")},
			[]history.Hop{hop("b", 0, 10, false), hop("a", 12, 14, true)},
		},
	} {
		t.Run(name, func(t *testing.T) { compare(t, c.want, endInOrder(c.all, names)) })
	}
}

func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// accounts returns the logs of servers with sidecars, in a new directory. The logs are empty.
func accounts(t *testing.T, servers ...string) (all []Logs) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range servers {
		all = append(all, Logs{Server: name, ID: "apiserver-" + name, Audit: filepath.Join(dir, name+"-audit"),
			Access: filepath.Join(dir, name+"-access")})
	}
	return all
}

// Three servers log one request. b forwarded it to c, which refused it, and then to a, whose
// kube-apiserver served it.
func TestHopsOfARunWithSidecars(t *testing.T) {
	all := accounts(t, "a", "b", "c")
	id := func(name string) string { return "apiserver-" + name }
	write(t, all[1].Access, line(t, 1000, 1300, func(r *sidecar.AccessRecord) {
		r.Client, r.Decision, r.Peer = address, "forward", id("a")
		r.Attempts = []sidecar.AccessAttempt{{Peer: id("c"), Outcome: "refused"}, {Peer: id("a"), Outcome: "answered"}}
	}))
	write(t, all[2].Access, line(t, 1010, 1020, func(r *sidecar.AccessRecord) {
		r.Client, r.Rerouted, r.Decision, r.Status = address, true, "unavailable", 503
	}))
	write(t, all[0].Access, line(t, 1030, 1301, func(r *sidecar.AccessRecord) { r.Client, r.Rerouted = "198.18.0.10", true }))
	behind := strings.NewReplacer(`["198.18.0.5"]`, `["198.18.0.5","198.18.0.10","127.0.0.1"]`, "10:00:01.000000Z", "10:00:01.100000Z")
	write(t, all[0].Audit, behind.Replace(received), behind.Replace(complete))
	got, err := hopsOf(all, epoch)
	if err != nil {
		t.Fatal(err)
	}
	refused := hop("c", 1010, 1020, true)
	refused.Status = 503
	served, asked := hop("a", 1030, 1300, true), hop("b", 1000, 1300, false)
	served.Groups = noGroups // as in the log of the kube-apiserver behind the sidecar
	served.Client, asked.Client, refused.Client = address, address, address
	compare(t, []history.Hop{served, asked, refused}, got)
}

func FuzzAccessed(f *testing.F) {
	f.Add(`{"auditID":"x1","start":"2026-11-21T10:00:01Z","end":"2026-11-21T10:00:02Z","status":200}` + "\n{")
	f.Fuzz(func(t *testing.T, log string) {
		all, err := readAccessLog(strings.NewReader(log), "b", epoch)
		if err != nil {
			return
		}
		hops := endInOrder(merge(all, nil), map[string]string{})
		if len(hops) != len(all) {
			t.Fatalf("%d records give %d hops", len(all), len(hops))
		}
		for _, h := range hops {
			if h.End < h.Start {
				t.Fatalf("hop ends before it starts: %+v", h)
			}
		}
	})
}
