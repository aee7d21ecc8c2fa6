package requestlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/apiserver"
)

const ms = time.Millisecond

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

// accounts returns the logs of servers, in a new directory. The logs are empty.
func accounts(t *testing.T, servers ...string) (all []Logs) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range servers {
		all = append(all, Logs{Server: name, ID: "apiserver-" + name, Audit: filepath.Join(dir, name+"-audit")})
	}
	return all
}

// b forwarded a request to a. The reference proxy names a in an annotation, and the record of a may
// be the later one.
func TestHopsOfServersWithTheReferenceProxy(t *testing.T) {
	if PeerAnnotation != apiserver.PeerAnnotation {
		t.Fatalf("the annotation is %s, and servers write %s", PeerAnnotation, apiserver.PeerAnnotation)
	}
	all := accounts(t, "a", "b")
	named := strings.Replace(complete, `"auditID"`, `"annotations":{"`+PeerAnnotation+`":"apiserver-a"},"auditID"`, 1)
	if named == complete {
		t.Fatal("the record has no auditID")
	}
	write(t, all[1].Audit, received, named)
	behind := strings.NewReplacer(`["198.18.0.5"]`, `["198.18.0.5","198.18.0.10"]`, "10:00:01.000000Z", "10:00:01.100000Z", "10:00:01.250000Z",
		"10:00:01.260000Z")
	write(t, all[0].Audit, behind.Replace(received), behind.Replace(complete))
	got, err := hopsOf(all, epoch)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, []history.Hop{told("a", 1100, 1250, true, ""), told("b", 1000, 1250, false, "")}, got)
}
