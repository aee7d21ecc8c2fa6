package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// answersFD is the file descriptor to which the sandboxed half of a session writes its answers.
const answersFD = 4

// Sessioned is the half of a session inside the sandbox. It makes the cluster, and carries out the
// schedules that it reads from requests until the end of requests, or until ctx ends. After a
// schedule that was not completely carried out, it carries out no more.
func Sessioned(ctx context.Context, dir Dir, requests io.Reader, c Console) error {
	syscall.CloseOnExec(answersFD)
	answers := json.NewEncoder(os.NewFile(answersFD, "answers"))
	s, end, err := dir.openSession(ctx, c)
	if err != nil {
		return errors.Join(err, answers.Encode(ScheduleResult{Error: err.Error()}))
	}
	defer end()
	if err := answers.Encode(ScheduleResult{}); err != nil {
		return err
	}
	for asked := json.NewDecoder(requests); ; {
		var request sessionRequest
		if err := asked.Decode(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the next schedule: %w", err)
		}
		result := s.carryOut(request)
		if err := answers.Encode(result); err != nil {
			return err
		}
		if result.Over() {
			return nil
		}
	}
}

// sessioned is a session inside the sandbox.
type sessioned struct {
	*engine.Session
	ctx       context.Context
	collector history.Collector
	qps       float64
}

// openSession makes the cluster of a session. The returned function ends the cluster.
func (d Dir) openSession(ctx context.Context, c Console) (s *sessioned, end func(), err error) {
	content, err := os.ReadFile(d.manifest())
	if err != nil {
		return nil, nil, err
	}
	var m sessionManifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", d.manifest(), err)
	}
	hosts := map[string]string{}
	var servers []scenario.Server
	for i, p := range local.Places(m.Run.Servers) {
		hosts[p.Name] = p.Advertised.Addr().String()
		servers = append(servers, scenario.Server{Name: p.Name, Version: m.Run.Servers[i].Version})
	}
	if err := sandbox.Setup(sandbox.Config{Scratch: d.scratch(), Hosts: hosts}); err != nil {
		return nil, nil, err
	}
	self, err := os.Executable() // the extension apiserver is this program too
	if err != nil {
		return nil, nil, err
	}
	endLog, err := d.logClients()
	if err != nil {
		return nil, nil, err
	}
	run, abandon := context.WithCancelCause(ctx)
	status := c.Status()
	m.Run.StartedAt = time.Now()
	collector := history.NewCollector(m.Run, nil)
	made, err := local.New(local.Config{
		Subject: m.Run.Subject, Servers: m.Run.Servers, APIServers: m.APIServers, Controllers: m.Controllers, Etcd: m.Etcd, Self: self,
		Files: d.files(), Recorder: collector.Recorder, Status: status,
		Failed: func(part string, why error) { abandon(recordLoss(collector.Recorder, part, why)) },
	})
	if err != nil {
		abandon(nil)
		endLog()
		return nil, nil, err
	}
	end = func() {
		made.Close()
		abandon(nil)
		endLog()
	}
	controllers := ""
	for version := range m.Controllers { // at most one
		controllers = version
	}
	session, err := engine.NewSession(run, servers, controllers, made, collector, engine.Options{QPS: m.Run.QPS, Status: status})
	if err != nil {
		end()
		return nil, nil, err
	}
	return &sessioned{session, run, collector, m.Run.QPS}, end, nil
}

// carryOut carries out a schedule and writes its history.
func (s *sessioned) carryOut(r sessionRequest) ScheduleResult {
	began := time.Now()
	done := s.CarryOut(s.ctx, engine.Schedule{Plan: r.Plan, Seed: r.Run.Seed})
	result := ScheduleResult{Took: time.Since(began), Reset: done.Reset, Left: done.Left}
	if done.Err != nil {
		result.Error = done.Err.Error()
	}
	if done.To == 0 { // the schedule was not begun
		return result
	}
	h, err := s.collector.Part(history.Part{From: done.From, To: done.To, Error: result.Error})
	if err == nil {
		result.Operations = len(h.Operations)
		describeAs(&h.Run, r.Run)
		err = r.Dir.SaveHistory(h)
	}
	if err != nil && result.Error == "" {
		result.Error = err.Error()
	}
	return result
}

// describeAs describes the part of a session like the run of its plan. It keeps the facts of the
// session: when the part began, and which versions the servers had then.
func describeAs(is *history.Run, as history.Run) {
	as.Schema, as.StartedAt, as.QPS = is.Schema, is.StartedAt, is.QPS
	*is = as
}
