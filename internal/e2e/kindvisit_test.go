package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// visited is a kind cluster on which a test acts in the middle of a run. The load continues
// meanwhile, and the next step of the plan waits. The run reads etcd.
type visited struct {
	*kind.Cluster
	recorder *history.Recorder
	// visit is called with 0 when all servers are ready, and after each replacement of a server
	// with the number of replaced servers. over is called after the end of the load.
	visit func(replaced int)
	over  func()

	replacements []replacement
	endObjects   func() error // nil until there is something to end
	unread       error        // why changes of objects are missing
}

// replacement is the duration of the replacement of a server.
type replacement struct{ start, end history.Time }

// Start implements [cluster.Cluster].
func (v *visited) Start(ctx context.Context) error {
	if err := v.Cluster.Start(ctx); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- v.Objects(watching, v.recorder.Now, v.recorder.Object) }()
	v.endObjects = func() error {
		cancel()
		return <-ended
	}
	v.visit(0)
	return nil
}

// ReplaceServer implements [cluster.Cluster].
func (v *visited) ReplaceServer(ctx context.Context, name, version string) error {
	r := replacement{start: v.recorder.Now()}
	if err := v.Cluster.ReplaceServer(ctx, name, version); err != nil {
		return err
	}
	r.end = v.recorder.Now()
	v.replacements = append(v.replacements, r)
	v.visit(len(v.replacements))
	return nil
}

// RecordPanics implements [cluster.Reachable]. It is called after the end of the load.
func (v *visited) RecordPanics() {
	if v.endObjects != nil {
		v.over()
		v.unread = v.endObjects()
	}
	v.Cluster.RecordPanics()
}

// Hops implements [cluster.Reachable]. It records the requests of controllers as well.
func (v *visited) Hops(epoch time.Time) ([]history.Hop, error) {
	hops, err := v.Cluster.Hops(epoch)
	requests, unread := v.Requests(epoch, v.recorder.Sent)
	for _, q := range requests {
		v.recorder.Request(q)
	}
	return hops, errors.Join(err, unread, v.unread)
}

// upgradeOnKind carries out the scenario rolling-upgrade on two nodes, with visits of a test.
// prepare receives the cluster before anything runs, and returns the visits.
func upgradeOnKind(t *testing.T, subject string, prepare func(*visited) (visit func(replaced int), over func())) (
	h *history.History, report reports.RunReport, replacements []replacement,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s, err := scenarios.Find("rolling-upgrade")
	must(t, err)
	plan := s.Plan(scenario.Parameters{Servers: 2, From: newPair.from, To: newPair.to, Bounds: history.DefaultBounds})
	plan.Pressure.Owners = 10
	must(t, plan.Validate())

	dir := t.TempDir()
	files := kind.Files{Keys: filepath.Join(dir, "keys"), Nodes: filepath.Join(dir, "nodes"), Logs: filepath.Join(dir, "logs")}
	for _, d := range []string{files.Keys, files.Nodes, files.Logs} {
		must(t, os.Mkdir(d, 0o700))
	}
	must(t, os.Chmod(files.Nodes, 0o755)) // root in the nodes, who may be another user here, must be able to read it
	config := kind.Config{Subject: subject, Files: files, Status: t.Logf}
	found, err := kind.Check(ctx, plan.Versions(), len(plan.Servers))
	must(t, err)
	config.Image = found.Image
	config.Name, err = kind.NewName()
	must(t, err)
	qps, err := strconv.ParseFloat(kindQPS, 64)
	must(t, err)
	about := history.Run{
		Scenario: s.Name, Sentence: s.Happens, Backend: scenario.BackendKind, Subject: subject, From: newPair.from, To: newPair.to, Seed: 1, QPS: qps,
		StartedAt: time.Now(), About: append([]string{"NoWrongfulDeletion"}, s.About...), Pressure: plan.Pressure, Bounds: plan.Bounds,
	}
	for _, server := range plan.Servers {
		about.Servers = append(about.Servers, history.Server{Name: server.Name, Version: server.Version})
	}
	for i, place := range kind.Places(config.Name, about.Servers) {
		about.Servers[i].ID, about.Servers[i].Address = place.ID, place.Node
	}
	config.Servers = about.Servers

	path := filepath.Join(dir, "history.jsonl")
	file, err := os.Create(path)
	must(t, err)
	defer func() { _ = file.Close() }()
	v := &visited{recorder: history.NewRecorder(file, about, nil)}
	config.Recorder = v.recorder
	v.Cluster, err = kind.New(config)
	must(t, err)
	t.Cleanup(func() { must(t, v.Close()) })
	v.visit, v.over = prepare(v)
	must(t, engine.Run(ctx, plan, v, v.recorder, engine.Options{Seed: about.Seed, QPS: about.QPS, Status: t.Logf}))

	judged := run(t, "judge", dir)
	t.Logf("exit code %d\n%s", judged.code, judged.output)
	report, err = reports.Read(filepath.Join(dir, reports.JSONFile))
	must(t, err)
	h, err = history.ReadFile(path)
	must(t, err)
	return h, report, v.replacements
}
