package local

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// diary keeps what is recorded.
type diary struct {
	mu      sync.Mutex
	entries []history.Lifecycle
}

func (d *diary) Lifecycle(l history.Lifecycle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, l)
}
func (d *diary) Now() history.Time { return time.Second }

// What is left of a server that has crashed is ended: half a server is nothing that a scenario could mean.
func TestACrashOfEitherProcessIsTheEndOfBoth(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"the kube-apiserver": {"exit 3", "exec sleep 1000"},
		"the sidecar":        {"exec sleep 1000", "exit 3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			c := &Cluster{config: Config{Recorder: d, Status: t.Logf}}
			s := c.newServer(place(scenario.SubjectReference, 0, "a"), "v1.37.1", nil)
			i := s.Begin()
			for _, script := range scripts {
				i.Add(shell(t, script))
			}
			s.watch(i)
			for _, p := range i.Processes() {
				<-p.done
			}
			if len(d.entries) != 1 || d.entries[0].State != history.StateCrashed {
				t.Errorf("recorded: %+v, want one crash", d.entries)
			}
		})
	}
}

// What cannot work may be refused. A server that ends at its start with a setup by which it should work has crashed.
func TestOnlyAWrongSetupIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		setup   *scenario.Setup
		refused bool
	}{
		"none":                {nil, false},
		"new certificates":    {&scenario.Setup{Serving: scenario.CertificateRotated}, false},
		"another's authority": {&scenario.Setup{PeerCA: scenario.TrustStranger}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			cluster := &Cluster{config: Config{Recorder: d, Status: t.Logf}}
			at := place(scenario.SubjectBuiltin, 0, "a")
			s := cluster.newServer(at, "v1.37.1", nil)
			at.Setup = c.setup
			i := s.Begin()
			i.Add(shell(t, "echo 'error: no'; exit 1"))
			<-i.Over()
			var refused *scenario.RefusedError
			if err := s.refusal(t.Context(), i, at); errors.As(err, &refused) != c.refused {
				t.Errorf("it ends with %v", err)
			}
			if (len(d.entries) > 0) != c.refused {
				t.Errorf("recorded: %+v", d.entries)
			}
		})
	}
}
