package requestlog

import (
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const (
	received = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x1","stage":"RequestReceived",` +
		`"requestURI":"/api/v1/pods","verb":"list","user":{"username":"jane"},"sourceIPs":["198.18.0.5"],` +
		`"requestReceivedTimestamp":"2026-11-21T10:00:01.000000Z","stageTimestamp":"2026-11-21T10:00:01.000000Z"}`
	complete = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x1","stage":"ResponseComplete",` +
		`"requestURI":"/api/v1/pods","verb":"list","user":{"username":"jane"},"sourceIPs":["198.18.0.5"],"responseStatus":{"metadata":{},"code":503},` +
		`"requestReceivedTimestamp":"2026-11-21T10:00:01.000000Z","stageTimestamp":"2026-11-21T10:00:01.250000Z"}`
)

// jane's address in these logs.
const address = "198.18.0.5"

// noGroups is the digest of the groups of users in these logs.
var noGroups = digestGroups(nil)

func TestAudited(t *testing.T) {
	rerouted := strings.ReplaceAll(received, `["198.18.0.5"]`, `["198.18.0.5","198.18.0.6"]`)
	inner := strings.ReplaceAll(rerouted, "10:00:01.000000Z", "10:00:01.100000Z")
	innerDone := strings.NewReplacer(`10:00:01.000000Z`, `10:00:01.100000Z`, `10:00:01.250000Z`, `10:00:01.200000Z`, `503`,
		`404`).Replace(complete)
	whole := history.Hop{Operation: "x1", Start: time.Second, End: 1250 * time.Millisecond,
		Entry: &history.Entry{Server: "b", Status: 503, User: "jane"}}
	nested := history.Hop{Operation: "x1", Start: 1100 * time.Millisecond, End: 1200 * time.Millisecond,
		Entry: &history.Entry{Server: "b", Status: 404, User: "jane", Rerouted: true}}
	open := history.Hop{Operation: "x1", Start: time.Second, End: time.Second, Entry: &history.Entry{Server: "b", User: "jane"}}
	listed := func(h history.Hop) handled {
		h.Groups, h.Client = noGroups, address
		return handled{Hop: h, requested: requested{verb: "list", uri: "/api/v1/pods"}}
	}

	for name, c := range map[string]struct {
		log  []string
		want []handled
	}{
		"both stages are joined":                      {[]string{received, complete}, []handled{listed(whole)}},
		"a killed server leaves the second stage out": {[]string{received}, []handled{listed(open)}},
		"a last line may be cut short":                {[]string{received, complete[:40]}, []handled{listed(open)}},
		"and the next process continues after it":     {[]string{complete[:300] + received, complete}, []handled{listed(whole)}},
		"a stage whose beginning is not in the log":   {[]string{complete}, nil},
		"a loop: the same server twice, nested":       {[]string{received, inner, innerDone, complete}, []handled{listed(whole), listed(nested)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAuditLog(strings.NewReader(strings.Join(c.log, "\n")), "b", epoch)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c.want, got)
		})
	}
}

// The first stage of a request names the sender. The later ones also name the user whom the sender
// impersonates.
func TestAuditedTellsTheImpersonatedUser(t *testing.T) {
	as := func(stage string) string {
		return strings.Replace(stage, `"user":{"username":"jane"}`, `"user":{"username":"jane"},"impersonatedUser":{"username":"joe","uid":"9","groups":["g"],"extra":{"k":["v"]}}`, 1)
	}
	started := strings.NewReplacer("ResponseComplete", "ResponseStarted", "01.250000Z", "01.100000Z").Replace(complete)
	for name, c := range map[string]struct {
		log  []string
		user string
	}{
		"to its end":                      {[]string{received, as(started), as(complete)}, "joe"},
		"until the server was killed":     {[]string{received, as(started)}, "joe"},
		"the server was killed before":    {[]string{received}, "jane"},
		"without a stage between the two": {[]string{received, as(complete)}, "joe"},
	} {
		all, err := readAuditLog(strings.NewReader(strings.Join(c.log, "\n")), "b", epoch)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v, %v", name, all, err)
		}
		got := all[0]
		if got.User != c.user {
			t.Errorf("%s: user %q, want %q", name, got.User, c.user)
		}
		if c.user == "joe" && (got.UID != "9" || got.Groups != digestGroups([]string{"g"}) || got.Extra == "") {
			t.Errorf("%s: %+v", name, got.Entry)
		}
	}
}

// A user is more than a name. All attributes must be the same on both sides of a hop, in any order.
func TestAuditedTellsAllOfTheUser(t *testing.T) {
	user := func(text string) history.Hop {
		t.Helper()
		all, err := readAuditLog(strings.NewReader(strings.Replace(received, `"user":{"username":"jane"}`, `"user":`+text, 1)), "b", epoch)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0].Hop
	}
	whole := user(`{"username":"jane","uid":"7","groups":["x","y"],"extra":{"Scopes":["a","b"],"k":["c"]}}`)
	if whole.User != "jane" || whole.UID != "7" || whole.Groups == "" || whole.Extra == "" {
		t.Errorf("%+v", whole)
	}
	if same := user(`{"username":"jane","uid":"7","groups":["y","x"],"extra":{"k":["c"],"scopes":["b","a"]}}`); *same.Entry != *whole.Entry {
		t.Errorf("in another order it is %+v rather than %+v", same.Entry, whole.Entry)
	}
	if bare := user(`{"username":"jane"}`); bare.UID != "" || bare.Groups == "" || bare.Groups == whole.Groups || bare.Extra != "" {
		t.Errorf("of one without all that: %+v", bare)
	}
	for _, other := range []string{`{"username":"jane","uid":"7","groups":["x"],"extra":{"Scopes":["a","b"],"k":["c"]}}`,
		`{"username":"jane","uid":"7","groups":["x","y"],"extra":{"Scopes":["a"],"k":["c"]}}`,
		`{"username":"jane","uid":"7","groups":["x,y"],"extra":{"Scopes":["a","b"],"k":["c"]}}`} {
		if user(other) == whole {
			t.Errorf("%s is the same", other)
		}
	}
}

func TestAuditedRefusesALogThatIsBrokenInTheMiddle(t *testing.T) {
	_, err := readAuditLog(strings.NewReader(received+"\nnonsense\n"+complete), "b", epoch)
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Fatalf("got %v, want an error about line 2", err)
	}
}

func FuzzAudited(f *testing.F) {
	f.Add(received + "\n" + complete)
	f.Add(complete + "\n" + received + "\n{")
	f.Fuzz(func(t *testing.T, log string) {
		all, err := readAuditLog(strings.NewReader(log), "b", epoch)
		if err != nil {
			return
		}
		for _, h := range all {
			if h.End < h.Start {
				t.Fatalf("hop ends before it starts: %+v", h)
			}
		}
	})
}
