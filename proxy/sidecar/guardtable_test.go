package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/skewproof/skewproof/proxy/peers"
)

// aServer is a local server as a processGuard sees it.
type aServer struct {
	process          string
	fails            error // of finding out the process
	ready, metrics   int   // statuses; 0: no answer
	said             string
	identified, read int // how often each was asked for
}

const ran, waits = `workqueue_work_duration_seconds_count{name="cluster_authentication_trust_controller"} 1`,
	`workqueue_work_duration_seconds_count{name="cluster_authentication_trust_controller"} 0`

// failed is the metric that counts failed runs.
func failed(times int) string {
	return fmt.Sprintf("workqueue_retries_total{name=\"cluster_authentication_trust_controller\"} %d", times)
}

// standardData is the ConfigMap of servers with the standard names.
func standardData() map[string]string {
	return map[string]string{
		"requestheader-client-ca-file": "a certificate", "requestheader-username-headers": `["X-Remote-User"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`,
		"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}
}

// guardOf returns a guard whose names have been compared with those in the ConfigMap.
func guardOf(t *testing.T, s *aServer, log *slog.Logger) *processGuard {
	t.Helper()
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: peers.Namespace, Name: authenticationConfig}, Data: standardData()})
	names := &headerNames{own: standardNames, client: client, log: log}
	if err := names.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &processGuard{
		names: names, log: log,
		process: func(context.Context) (string, error) { s.identified++; return s.process, s.fails },
		get: func(_ context.Context, path string) (*http.Response, error) {
			s.read++
			code, body := s.ready, "ok"
			if path == "/metrics" {
				code, body = s.metrics, s.said
			}
			if code == 0 {
				return nil, errors.New("no answer")
			}
			return answers(code, body), nil
		},
	}
}

// A new process gets callers' requests only when it is ready and has published its names. The table
// has every answer that says so, and some that do not.
func TestWhenANewProcessIsAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		server aServer
		admits bool
	}{
		"ready, published":            {aServer{ready: 200, metrics: 200, said: "x 1\n" + ran + "\ny 2"}, true},
		"published often":             {aServer{ready: 200, metrics: 200, said: strings.Replace(ran, " 1", " 1217", 1)}, true},
		"ten times":                   {aServer{ready: 200, metrics: 200, said: strings.Replace(ran, " 1", " 10", 1)}, true},
		"every run failed":            {aServer{ready: 200, metrics: 200, said: failed(2) + "\n" + strings.Replace(ran, " 1", " 2", 1)}, false},
		"a run fails at this moment":  {aServer{ready: 200, metrics: 200, said: failed(1) + "\n" + waits}, false},
		"a run succeeded at last":     {aServer{ready: 200, metrics: 200, said: strings.Replace(ran, " 1", " 3", 1) + "\n" + failed(2)}, true},
		"another controller failed":   {aServer{ready: 200, metrics: 200, said: strings.Replace(failed(9), "trust_", "", 1) + "\n" + ran}, true},
		"many runs, written short":    {aServer{ready: 200, metrics: 200, said: failed(7) + "\n" + strings.Replace(ran, " 1", " 1e+06", 1)}, true},
		"no such metric":              {aServer{ready: 200, metrics: 200, said: "x 0\n"}, true},
		"another controller's":        {aServer{ready: 200, metrics: 200, said: strings.Replace(waits, "trust_", "", 1)}, true},
		"not published":               {aServer{ready: 200, metrics: 200, said: "x 1\n" + waits + "\ny 2"}, false},
		"not published, white space":  {aServer{ready: 200, metrics: 200, said: waits + "  "}, false},
		"metrics are forbidden":       {aServer{ready: 200, metrics: 403, said: "forbidden"}, true},
		"there are no metrics":        {aServer{ready: 200, metrics: 404}, true},
		"metrics: too many requests":  {aServer{ready: 200, metrics: 429, said: ran}, false},
		"metrics: 499":                {aServer{ready: 200, metrics: 499, said: ran}, true},
		"metrics: 500":                {aServer{ready: 200, metrics: 500, said: ran}, false},
		"metrics: 503":                {aServer{ready: 200, metrics: 503, said: ran}, false},
		"metrics: no answer":          {aServer{ready: 200}, false},
		"not ready":                   {aServer{ready: 500, metrics: 200, said: ran}, false},
		"ready is forbidden":          {aServer{ready: 403, metrics: 200, said: ran}, false},
		"ready is accepted":           {aServer{ready: 202, metrics: 200, said: ran}, false},
		"ready: no answer":            {aServer{metrics: 200, said: ran}, false},
		"the process is not known":    {aServer{fails: errNotIdentified, ready: 200, metrics: 200, said: ran}, false},
		"a line longer than a buffer": {aServer{ready: 200, metrics: 200, said: strings.Repeat("x", 1<<20) + "\n" + waits}, false},
	} {
		g := guardOf(t, &c.server, slog.New(slog.DiscardHandler))
		err := g.admit(t.Context(), g.names.published.Load())
		if (err == nil) != c.admits {
			t.Errorf("%s: %v, admits %t", name, err, c.admits)
		}
		var status *apierrors.StatusError
		if err != nil && c.server.fails == nil && (!errors.As(err, &status) || status.ErrStatus.Code != http.StatusServiceUnavailable || status.ErrStatus.Details.RetryAfterSeconds == 0) {
			t.Errorf("%s: %v, want 503 that says when to try again", name, err)
		}
	}
}

// Which event makes the guard ask again, and what it then lets pass.
func TestWhatTheGuardRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		s := &aServer{process: "1", ready: 200, metrics: 200, said: ran}
		g := guardOf(t, s, slog.New(slog.NewTextHandler(&logged, nil)))
		for i, stage := range []struct {
			change func()
			admits bool
			reads  int // requests to the server, besides finding out the process
			logs   int // in total
		}{
			{nil, true, 2, 0},
			{nil, true, 0, 0},
			{func() { s.ready = 500 }, true, 0, 0}, // the same process
			{func() { s.process = "2" }, false, 1, 1},
			{nil, false, 1, 1}, // logged once
			{func() { s.process = "1" }, true, 0, 1},
			{func() { s.process = "3" }, false, 1, 1}, // still the same trouble
			{func() { s.ready, s.metrics = 200, 503 }, false, 2, 1},
			{func() { s.metrics, s.said = 200, waits }, false, 2, 1},
			{func() { s.said = ran }, true, 2, 1},
			{func() { s.ready, s.process = 500, "4" }, false, 1, 2}, // the next trouble
			{func() { s.fails = errors.New("busy") }, false, 0, 2},
			{func() { s.fails, s.process = nil, "3" }, true, 0, 2},
		} {
			if stage.change != nil {
				stage.change()
			}
			time.Sleep(time.Millisecond)
			s.identified, s.read = 0, 0
			err := g.admit(t.Context(), g.names.published.Load())
			if (err == nil) != stage.admits || s.identified != 1 || s.read != stage.reads {
				t.Errorf("stage %d: %v after %d and %d questions; want admitted %t after 1 and %d", i+1, err, s.identified, s.read, stage.admits, stage.reads)
			}
			if n := strings.Count(logged.String(), "level=WARN"); n != stage.logs {
				t.Errorf("stage %d: %d warnings, want %d: %s", i+1, n, stage.logs, &logged)
			}
		}
	})
}

// A check counts for a connection if it began after the connection was dialled. Its result is
// shared, good or bad. A check does not end with the request that began it.
func TestConnectionsShareChecksThatBeganAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &aServer{process: "1", ready: 200, metrics: 200, said: ran}
		g := guardOf(t, s, slog.New(slog.DiscardHandler))
		inner := g.process
		g.process = func(ctx context.Context) (string, error) {
			if ends, ok := ctx.Deadline(); !ok || time.Until(ends) != guardTimeout || ctx.Err() != nil {
				t.Errorf("a check that ends at %s (%t), or has ended: %v", ends, ok, ctx.Err())
			}
			return inner(ctx)
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		for i, c := range []struct {
			dialled time.Duration // before now
			later   time.Duration // than the connection before
			fails   bool          // the next check would
			checks  int           // in total
			admits  bool
		}{
			{0, 0, false, 1, true}, {0, time.Second, false, 2, true}, {time.Nanosecond, 0, true, 2, true}, {time.Minute, time.Second, true, 2, true},
			{time.Millisecond, time.Second, true, 3, false}, {time.Minute, 0, false, 3, false}, {0, time.Second, false, 4, true},
		} {
			time.Sleep(c.later)
			s.fails = nil
			if c.fails {
				s.fails = errors.New("busy")
			}
			err := g.checkedSince(left, time.Now().Add(-c.dialled))
			if (err == nil) != c.admits || s.identified != c.checks {
				t.Errorf("connection %d: %v after %d checks; want admitted %t after %d", i+1, err, s.identified, c.admits, c.checks)
			}
		}
	})
}

// Requests whose headers were cleaned by other names than are published now do not pass.
func TestOnlyThePresentNamesAreAdmitted(t *testing.T) {
	s := &aServer{process: "1", ready: 200, metrics: 200, said: ran}
	g := guardOf(t, s, slog.New(slog.DiscardHandler))
	present := g.names.published.Load()
	same := *present
	for name, c := range map[string]struct {
		names *identityNames
		want  error
	}{"the present ones": {present, nil}, "a copy": {&same, errNamesChanged}, "none": {nil, errNamesChanged}} {
		if err := g.admit(t.Context(), c.names); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	data := standardData()
	data["requestheader-username-headers"] = `["X-Remote-User","X-New"]`
	if err := g.names.compare(data); err != nil {
		t.Fatal(err)
	}
	if err := g.admit(t.Context(), present); err != errNamesChanged {
		t.Errorf("after new names were published: %v", err)
	}
	if err := g.admit(t.Context(), g.names.published.Load()); err != nil {
		t.Errorf("with the new names: %v", err)
	}
}

// What is published after the first comparison is only added to the names that are removed. A
// ConfigMap without news changes nothing: requests in flight were cleaned by the same names.
func TestPublishedNamesOnlyGrow(t *testing.T) {
	var changes []*identityNames
	names := &headerNames{own: standardNames, log: slog.New(slog.DiscardHandler), changed: func(n *identityNames) { changes = append(changes, n) }}
	all := func() string {
		p := names.published.Load()
		if p == nil {
			return "none"
		}
		return strings.Join(p.user, ",") + " " + strings.Join(p.uid, ",") + " " + strings.Join(p.group, ",") + " " + strings.Join(p.extra, ",")
	}
	const standard = "X-Remote-User X-Remote-Uid X-Remote-Group X-Remote-Extra-"
	for i, stage := range []struct {
		key, value string
		fails      bool
		changes    int
		want       string
	}{
		{"username-headers", `["X-Remote-User","X-A"]`, true, 0, "none"}, // it has never agreed
		{"", "", false, 1, standard},
		{"", "", false, 1, standard},
		{"username-headers", `["X-Remote-User","X-A"]`, false, 2, "X-A,X-Remote-User X-Remote-Uid X-Remote-Group X-Remote-Extra-"},
		{"username-headers", `["X-A","X-Remote-User"]`, false, 2, "X-A,X-Remote-User X-Remote-Uid X-Remote-Group X-Remote-Extra-"},
		{"", "", false, 2, "X-A,X-Remote-User X-Remote-Uid X-Remote-Group X-Remote-Extra-"},
		{"uid-headers", `["X-B"]`, false, 3, "X-A,X-Remote-User X-B,X-Remote-Uid X-Remote-Group X-Remote-Extra-"},
		{"group-headers", `["X-C"]`, false, 4, "X-A,X-Remote-User X-B,X-Remote-Uid X-C,X-Remote-Group X-Remote-Extra-"},
		{"extra-headers-prefix", `["X-D-"]`, false, 5, "X-A,X-Remote-User X-B,X-Remote-Uid X-C,X-Remote-Group X-D-,X-Remote-Extra-"},
		{"group-headers", `no JSON`, false, 5, "X-A,X-Remote-User X-B,X-Remote-Uid X-C,X-Remote-Group X-D-,X-Remote-Extra-"},
		{"client-ca-file", "", false, 5, "X-A,X-Remote-User X-B,X-Remote-Uid X-C,X-Remote-Group X-D-,X-Remote-Extra-"},
	} {
		data := maps.Clone(standardData())
		if stage.key != "" {
			data["requestheader-"+stage.key] = stage.value
		}
		err := names.compare(data)
		if (err != nil) != stage.fails || len(changes) != stage.changes || all() != stage.want {
			t.Errorf("stage %d: %v, %d changes, %q; want an error %t, %d, %q", i+1, err, len(changes), all(), stage.fails, stage.changes, stage.want)
		}
		if n := len(changes); n > 0 && changes[n-1] != names.published.Load() {
			t.Errorf("stage %d: told of other names than are published", i+1)
		}
		for _, name := range []string{"X-A", "X-B", "X-C", "X-D-x"} {
			h := http.Header{name: {"x"}, "X-Other": {"x"}}
			dropped := names.drop(h)
			if _, kept := h[name]; kept == strings.Contains(all(), name[:3]) || dropped != names.published.Load() || len(h["X-Other"]) != 1 {
				t.Errorf("stage %d: %s is kept: %t", i+1, name, kept)
			}
		}
	}
}
