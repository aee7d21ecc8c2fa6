package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// held is a cluster that is held after its plan. It takes the steps of 'skewproof step', one at a
// time.
type held struct {
	steps  *step.Executor
	status func(format string, args ...any)
	// provide makes sure that servers of a version can be started. binary is the kube-apiserver of
	// that version. It is empty if the run should have it already.
	provide func(version, binary string) error

	turn sync.Mutex // protects steps
}

// request is the request of 'skewproof step': a step, or a list of the present state if Step is
// nil.
type request struct {
	Step *scenario.Step `json:"step,omitempty"`
	// Words are the words from which the step was read.
	Words []string `json:"words,omitempty"`
	// Binary is the kube-apiserver of Step.Version. It is empty if the run has it.
	Binary string `json:"binary,omitempty"`
}

// answer is the result of a request. Said is for people, and may be set in addition to Error.
type answer struct {
	Said  []string `json:"said,omitempty"`
	Error string   `json:"error,omitempty"`
}

// errEnding is the error of a step on a cluster that is ending.
var errEnding = errors.New("the run was ended meanwhile, and its cluster with it")

// These are the limits of a request. The same program sends it.
const (
	requestTimeout = 10 * time.Second
	requestBytes   = 1 << 20
)

// hold listens at the socket of the run, calls ready, and answers requests until ctx ends. When
// hold returns, no step is active any more. If there can be no socket, the cluster is still held.
func (h *held) hold(ctx context.Context, d Dir, ready func() error) error {
	listener, err := d.listen()
	if err != nil {
		h.status("%v; the cluster is held, and takes no steps", err)
	} else {
		defer d.unlink()
		defer func() { _ = listener.Close() }()
	}
	if err := ready(); err != nil {
		return err
	}
	if listener != nil {
		h.serve(ctx, listener)
	}
	<-ctx.Done()
	return nil
}

// serve answers requests until ctx ends.
func (h *held) serve(ctx context.Context, listener net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				h.status("take no more steps: %v", err)
			}
			return
		}
		all.Go(func() {
			defer func() { _ = conn.Close() }()
			h.converse(ctx, conn)
		})
	}
}

// converse reads one request and answers it. A step that has begun is carried out even if the
// client no longer waits for the answer.
func (h *held) converse(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	var r request
	var a answer
	if err := json.NewDecoder(io.LimitReader(conn, requestBytes)).Decode(&r); err != nil {
		a.Error = fmt.Sprintf("read a request for a step: %v", err)
	} else if said, err := h.do(ctx, r); err != nil {
		a = answer{said, err.Error()}
	} else {
		a.Said = said
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestTimeout))
	_ = json.NewEncoder(conn).Encode(a) // there is no other receiver for the error
}

// do carries out a request after the requests before it.
func (h *held) do(ctx context.Context, r request) (said []string, err error) {
	h.turn.Lock()
	defer h.turn.Unlock()
	if ctx.Err() != nil {
		return nil, errEnding
	}
	if r.Step == nil {
		return strings.Split(strings.TrimSuffix(h.steps.State().String(), "\n"), "\n"), nil
	}
	if r.Step.Version != "" {
		if err := h.provide(r.Step.Version, r.Binary); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Step, err)
		}
	}
	h.status("skewproof step: %s", strings.Join(r.Words, " "))
	began := time.Now()
	said, err = h.steps.Do(ctx, *r.Step)
	switch {
	case err == nil:
		said = append(said, fmt.Sprintf("done in %.1fs", time.Since(began).Seconds()))
	case ctx.Err() != nil:
		err = errEnding
	}
	return said, err
}
