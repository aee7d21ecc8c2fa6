package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
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
	ctx     context.Context
	records *records
}

// records takes the records of a cluster for the history of the present schedule.
type records struct {
	present atomic.Pointer[history.Recorder]
}

// Lifecycle and the others implement [lifecycle.Recorder].
func (r *records) Lifecycle(l history.Lifecycle)         { r.present.Load().Lifecycle(l) }
func (r *records) Configuration(c history.Configuration) { r.present.Load().Configuration(c) }
func (r *records) Now() history.Time                     { return r.present.Load().Now() }

// openSession makes the cluster of a session. The returned function ends the cluster.
func (d Dir) openSession(ctx context.Context, c Console) (s *sessioned, end func(), err error) {
	m, err := d.readManifest()
	if err != nil {
		return nil, nil, err
	}
	self, err := d.setUp(m.Run.Servers)
	if err != nil {
		return nil, nil, err
	}
	var servers []scenario.Server
	for _, server := range m.Run.Servers {
		servers = append(servers, scenario.Server{Name: server.Name, Version: server.Version})
	}
	endLog, err := d.logClients()
	if err != nil {
		return nil, nil, err
	}
	run, abandon := context.WithCancelCause(ctx)
	status := c.Status()
	all := &records{}
	all.present.Store(history.NewRecorder(io.Discard, m.Run, nil)) // until the first schedule
	made, err := local.New(local.Config{
		Subject: m.Run.Subject, Servers: m.Run.Servers, Programs: m.Programs, Self: self, Files: d.files(), Recorder: all, Status: status,
		Failed: func(part string, why error) { abandon(recordLoss(all.present.Load(), part, why)) },
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
	session, err := engine.NewSession(run, servers, controllers, made, engine.Options{QPS: m.Run.QPS, Status: status})
	if err != nil {
		end()
		return nil, nil, err
	}
	return &sessioned{session, run, all}, end, nil
}

// carryOut carries out a schedule and writes its history.
func (s *sessioned) carryOut(r sessionRequest) (result ScheduleResult) {
	began := time.Now()
	file, err := r.Dir.createHistory()
	if err == nil {
		result.Left, result.Reset, err = s.CarryOut(s.ctx, r.Plan, r.Run.Seed, func() *history.Recorder {
			r.Run.StartedAt = time.Now()
			recorder := history.NewRecorder(file, r.Run, nil)
			s.records.present.Store(recorder)
			return recorder
		})
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		result.Error = err.Error()
	}
	result.Took = time.Since(began)
	return result
}
