package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// neverUp is a cluster that does not start.
type neverUp struct {
	cluster.Reachable
	asked bool
}

func (c *neverUp) Start(context.Context) error {
	c.asked = true
	return errors.New("etcd has no disk")
}
func (c *neverUp) RecordPanics()                         {}
func (c *neverUp) Hops(time.Time) ([]history.Hop, error) { return nil, nil }

// The engine gets the cluster that the backend makes. The caller gets the same cluster and has to
// close it, even if it did not start.
func TestTheEngineGetsTheClusterThatWasMade(t *testing.T) {
	p, err := Spec{Scenario: "quiet"}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	dir := fresh(t)
	want := &neverUp{}
	m := manifest{Run: p.describe(), Plan: p.Schedule}
	got, err := record(t.Context(), dir, m, engine.Options{Status: silent.Status()}, func(*history.Recorder) (*neverUp, error) { return want, nil })
	if got != want || !want.asked || err == nil || !strings.Contains(err.Error(), "etcd has no disk") {
		t.Errorf("made %v, which was asked to start: %v; error %v", got, want.asked, err)
	}
	h, err := history.ReadFile(dir.History())
	if err != nil || h.Run.Reproduce != p.Spec.Command() || h.Run.StartedAt.IsZero() {
		t.Errorf("history of %+v, error %v", h, err)
	}
}

// If a cluster cannot be made, there is nothing to close, and the history says so.
func TestAClusterThatCannotBeMade(t *testing.T) {
	dir := fresh(t)
	made, err := record(t.Context(), dir, manifest{}, engine.Options{Status: silent.Status()}, func(*history.Recorder) (*neverUp, error) {
		return nil, errors.New("no hosts")
	})
	if made != nil || err == nil || !strings.Contains(err.Error(), "no hosts") {
		t.Errorf("made %v, error %v", made, err)
	}
	if _, err := os.Stat(dir.History()); err != nil {
		t.Error(err)
	}
	if _, err := record(t.Context(), dir, manifest{}, engine.Options{Status: silent.Status()}, func(*history.Recorder) (*neverUp, error) { return &neverUp{}, nil }); err == nil {
		t.Error("a run writes over the history of another")
	}
}

// fresh is the directory of a run that has not begun.
func fresh(t *testing.T) Dir {
	t.Helper()
	d, err := NewDir(filepath.Join(t.TempDir(), "run"), "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// brief is a cluster that carries out a plan without effect. No requests may be sent to its
// servers.
type brief struct {
	neverUp
	acts []string
}

func (*brief) Start(context.Context) error { return nil }
func (c *brief) KillServer(_ context.Context, name string) error {
	c.acts = append(c.acts, name)
	return nil
}

// The plan is carried out up to the step after which the cluster is held. Faults that are active
// then stay active.
func TestAPlanEndsWhereTheClusterIsHeld(t *testing.T) {
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a"}, {Name: "b"}}, Steps: []scenario.Step{
		{Action: scenario.Kill, Server: "a"}, {Action: scenario.Kill, Server: "b"},
	}}
	for at, want := range [][]string{nil, {"a"}, {"a", "b"}} {
		dir, c := fresh(t), &brief{}
		m := manifest{Run: history.Run{Servers: []history.Server{{Name: "a"}, {Name: "b"}}}, Plan: plan, NoLoad: true, At: &at}
		if _, err := record(t.Context(), dir, m, engine.Options{Status: silent.Status()}, func(*history.Recorder) (*brief, error) { return c, nil }); err != nil {
			t.Fatal(err)
		}
		h, err := history.ReadFile(dir.History())
		if err != nil || !slices.Equal(c.acts, want) || len(h.Steps) != at || len(h.Faults) != 0 {
			t.Errorf("--at %d: it killed %q and recorded %d steps and %d faults, error %v", at, c.acts, len(h.Steps), len(h.Faults), err)
		}
	}
}
