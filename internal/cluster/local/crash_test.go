package local

import (
	"sync"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/scenarios"
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
			s := c.newServer(place(scenarios.SubjectReference, 0, "a"), "v1.37.1", nil)
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
