package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/skewproof/skewproof/internal/run"
)

// heldCluster is the held cluster of a run, in its own process.
type heldCluster struct {
	dir  run.Dir
	end  func()
	over chan struct{} // closed when the process has ended
}

// heldLimit is how long a held cluster may take to start. heldPoll is how often hold asks whether
// it is up.
const (
	heldLimit = 4 * time.Minute
	heldPoll  = 200 * time.Millisecond
)

// hold starts a run that keeps its cluster, and returns when the cluster is up. The run writes its
// output to the file Spec.Out+".log". The caller ends the run with stop.
func hold(ctx context.Context, program string, spec run.Spec) (*heldCluster, error) {
	alive, cancel := context.WithCancel(ctx)
	cmd, log, err := command(alive, program, spec)
	if err != nil {
		cancel()
		return nil, err
	}
	h := &heldCluster{dir: run.Dir(spec.Out), end: cancel, over: make(chan struct{})}
	go func() {
		defer close(h.over)
		_ = wait(cmd, shutdownGraceOf(spec)) // the log says why the process ended
	}()
	defer func() { _ = log.Close() }()
	limit := time.NewTimer(heldLimit)
	defer limit.Stop()
	poll := time.NewTicker(heldPoll)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			if h.dir.Act(ctx, []string{"list"}, run.Console{Out: io.Discard, Progress: io.Discard}) == nil {
				return h, nil
			}
			continue
		case <-h.over:
			err = fmt.Errorf("the run ended before its cluster was up: %s", lastSaid(log))
		case <-limit.C:
			err = fmt.Errorf("the cluster is not up after %s; its log is %s.log", heldLimit, spec.Out)
		case <-ctx.Done():
			err = errors.New(interrupted)
		}
		h.stop()
		return nil, err
	}
}

// stop ends the cluster, and returns when all its processes are gone.
func (h *heldCluster) stop() {
	h.end()
	<-h.over
}
