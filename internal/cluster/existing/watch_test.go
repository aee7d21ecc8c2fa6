package existing

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
)

// ledger keeps the recorded states.
type ledger struct {
	mu    sync.Mutex
	start time.Time
	all   []history.Lifecycle
	// faults are written only at the end of a run.
	faults []history.Fault
}

func (l *ledger) Now() history.Time { return time.Since(l.start) }

func (l *ledger) Configuration(history.Configuration) {}

func (l *ledger) Fault(f history.Fault) { l.faults = append(l.faults, f) }

func (l *ledger) Lifecycle(r history.Lifecycle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

// told returns the recorded states of a server.
func (l *ledger) told(server string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for _, r := range l.all {
		if r.Server == server {
			words = append(words, fmt.Sprintf("%d %s", r.Incarnation, r.State))
		}
	}
	return strings.Join(words, ", ")
}

// endpoint answers only /readyz, on loopback.
func endpoint(t *testing.T, ready *atomic.Bool) Endpoint {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s: only reads are allowed", r.Method, r.URL.Path)
		case r.URL.Path == "/readyz" && !ready.Load():
			http.Error(w, "not now", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	return Endpoint{Name: "a", Config: config}
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		case <-tick.C:
		}
	}
}

// If a server is not ready for some time, the run notices it. It does not record a crash, because
// that would blame the server.
func TestAServerThatComesAndGoes(t *testing.T) {
	var ready atomic.Bool
	ready.Store(true)
	endpoint := endpoint(t, &ready)
	record := &ledger{start: time.Now()}
	c, err := New([]Endpoint{endpoint}, nil, []string{"a"}, record, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Serving("a") != 1 || c.Serving("nobody") != 0 {
		t.Errorf("a serves as %d, want 1", c.Serving("a"))
	}
	ready.Store(false)
	until(t, "the server to be gone", func() bool { return c.Serving("a") == 0 })
	ready.Store(true)
	until(t, "the server to be back", func() bool { return c.Serving("a") == 2 })
	c.Close()
	if got := record.told("a"); got != "1 ready, 1 stopping, 1 stopped, 2 ready" {
		t.Errorf("recorded: %s", got)
	}
	c.RecordPanics()
	if len(record.faults) != 1 || record.faults[0].Kind != history.FaultProxyOff || record.faults[0].Server != "a" || !record.faults[0].Effective() {
		t.Errorf("faults %+v, want that the proxy of a is off", record.faults)
	}
}

func TestStartNeedsEveryServer(t *testing.T) {
	var ready atomic.Bool
	endpoint := endpoint(t, &ready)
	c, err := New([]Endpoint{endpoint}, nil, nil, &ledger{start: time.Now()}, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `server "a" at https://127.0.0.1`) || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("error %v", err)
	}
}

// Servers that skewproof did not start are never changed, whatever a plan says.
func TestNothingIsChanged(t *testing.T) {
	var ready atomic.Bool
	ready.Store(true)
	c, err := New([]Endpoint{endpoint(t, &ready)}, nil, nil, &ledger{start: time.Now()}, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for what, err := range map[string]error{
		"start": c.StartServer(ctx, "a", ""), "stop": c.StopServer(ctx, "a"), "kill": c.KillServer(ctx, "a"), "pause": c.PauseServer(ctx, "a"),
		"resume": c.ResumeServer(ctx, "a"), "replace": c.ReplaceServer(ctx, "a", ""),
	} {
		if err == nil {
			t.Errorf("%s is not refused", what)
		}
	}
	if admin := c.Admin(); admin.Host != "" || len(admin.CAData) == 0 {
		t.Errorf("the identity of the load has the host %q and %d bytes of CA", admin.Host, len(admin.CAData))
	}
}
