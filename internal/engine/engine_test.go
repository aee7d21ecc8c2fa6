package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// A request that was answered before a server was killed or paused does not count as evidence for
// the fault. A request that had to wait for the end of a pause does.
func TestAFaultOfAProcessTouchesWhatIsAskedMeanwhile(t *testing.T) {
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	w := &witness{Recorder: recorder}
	ask := func(from, to history.Time) {
		recorder.Operation(history.Operation{Start: from, End: to, Sent: &history.Sent{Server: "a"}, Received: &history.Received{Status: 200}})
	}
	suffer := func(kind scenario.Action, from, to history.Time) {
		w.Fault(history.Fault{Kind: string(kind), Server: "a", Start: from, End: to})
	}
	ask(1, 2)
	suffer(scenario.Pause, 3, 4)
	ask(5, 6)
	suffer(scenario.Pause, 10, 20)
	ask(11, 25) // answered after the server ran again
	suffer(scenario.Kill, 30, 40)
	ask(29, 30)
	ask(31, 32)
	w.tell(nil)
	if err := recorder.Close(nil); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	var met []int
	for _, f := range h.Faults {
		met = append(met, f.Evidence.Requests)
	}
	if want := []int{0, 1, 2}; !slices.Equal(met, want) {
		t.Errorf("the faults met %v requests, want %v", met, want)
	}
}

func TestRequestsThroughALink(t *testing.T) {
	hop := func(operation, server string, at int, rerouted bool) history.Hop {
		start := history.Time(at) * time.Second
		return history.Hop{Operation: operation, Start: start, End: start + 100*time.Millisecond,
			Entry: &history.Entry{Server: server, Rerouted: rerouted}}
	}
	hops := []history.Hop{
		hop("early", "b", 1, false), hop("early", "a", 1, true),
		hop("local", "b", 5, false),
		hop("passed on", "b", 6, false), hop("passed on", "a", 6, true),
		hop("from another", "c", 7, false), hop("from another", "a", 7, true),
	}
	for name, c := range map[string]struct {
		from, to string
		want     int
	}{
		"between servers": {"b", "a", 1}, "another pair": {"c", "a", 1}, "the other way": {"a", "b", 0},
		"from clients": {fault.Client, "b", 2}, "to etcd": {"b", fault.Etcd, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := history.Fault{From: c.from, To: c.to, Start: 4 * time.Second, End: 8 * time.Second}
			if got := requestsThrough(f, hops); got != c.want {
				t.Errorf("%d requests, want %d", got, c.want)
			}
		})
	}
}

func TestInterruptionEndsASleepWithItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the load has stopped")
	cancel(cause)
	if err := (clock{}).Sleep(ctx, time.Hour); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// If a run was cancelled for a reason and something in it failed, the reason comes first, unless
// both are the same. A cancellation without a reason does not make a complete run fail.
func TestWhyARunEnded(t *testing.T) {
	reason, failed := errors.New("etcd ended"), errors.New("step 2 failed")
	within := fmt.Errorf("sleep: %w", reason)
	for _, c := range []struct {
		name       string
		cause, err error
		want       string
	}{
		{"complete", nil, nil, ""},
		{"a step failed", nil, failed, "step 2 failed"},
		{"cancelled when it was complete", context.Canceled, nil, ""},
		{"stopped when it was complete", ErrStopped, nil, ""},
		{"a step says that the run was stopped", ErrStopped, fmt.Errorf("step 2, sweep: %w", ErrStopped), "step 2, sweep: the run was stopped"},
		{"stopped, and a log cannot be read", ErrStopped, failed, "the run was stopped\nstep 2 failed"},
		{"cancelled, and a step failed", context.Canceled, failed, "context canceled\nstep 2 failed"},
		{"a step says that the run was cancelled", context.Canceled, fmt.Errorf("sleep: %w", context.Canceled), "sleep: context canceled"},
		{"a reason, though it was complete", reason, nil, "etcd ended"},
		{"a reason, and a step failed", reason, failed, "etcd ended\nstep 2 failed"},
		{"a step names the reason", reason, within, "sleep: etcd ended"},
	} {
		got := ""
		if err := ended(c.cause, c.err); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A request meets a fault of a link if both exist at the same time, even for one instant.
func TestRequestsMeetAFaultUpToItsEdges(t *testing.T) {
	const start, end = 10, 20
	for _, c := range []struct {
		from, to history.Time
		want     int
	}{
		{5, 9, 0}, {5, 10, 1}, {5, 11, 1}, {5, 30, 1}, {12, 14, 1}, {19, 30, 1}, {20, 30, 1}, {21, 30, 0},
	} {
		hops := []history.Hop{{Operation: "1", Start: c.from, End: c.to, Entry: &history.Entry{Server: "b"}}}
		if got := requestsThrough(history.Fault{From: fault.Client, To: "b", Start: start, End: end}, hops); got != c.want {
			t.Errorf("a request from %d to %d met %d times the fault from %d to %d, want %d", c.from, c.to, got, start, end, c.want)
		}
	}
}

// Run asks the logs of servers for everything since the recorder began, because the recorder's
// clock starts at the epoch of the history.
func TestHopsAreCountedFromTheBeginningOfTheHistory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const ago = 24 * time.Hour
	cluster := &telling{}
	recorder := history.NewRecorder(io.Discard, history.Run{Servers: []history.Server{{Name: "a"}}}, func() history.Time { return ago })
	before := time.Now().Add(-ago)
	_ = Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, cluster, recorder, Options{Status: t.Logf}) // it cannot start
	if cluster.epoch.Before(before) || cluster.epoch.After(time.Now().Add(-ago)) {
		t.Errorf("the logs were read from %s on, want %s", cluster.epoch, before)
	}
}

// starting is a cluster that does not start before its time is over.
type starting struct {
	cluster.Reachable // anything else would be a nil dereference, and fail the test
}

func (*starting) Start(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("start kube-apiserver: connection refused")
}
func (*starting) RecordPanics()                         {}
func (*starting) Hops(time.Time) ([]history.Hop, error) { return nil, nil }

func TestTheHistoryTellsWhyARunWasEnded(t *testing.T) {
	ctx, abandon := context.WithCancelCause(t.Context())
	abandon(errors.New("etcd ended although the run did not stop it"))
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	err := Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, &starting{}, recorder, Options{Status: t.Logf})
	if err == nil {
		t.Error("no error")
	}
	h, readErr := history.Read(&file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if !strings.HasPrefix(h.End.Error, "etcd ended although the run did not stop it") || !strings.Contains(h.End.Error, "connection refused") {
		t.Errorf("it ended with %q", h.End.Error)
	}
}

// What a server says when it was stopped before it was ready explains nothing.
func TestARunThatIsStoppedBeforeItsServersAreReady(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(ErrStopped)
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	err := Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, &starting{}, recorder, Options{Status: t.Logf})
	if !errors.Is(err, ErrStopped) {
		t.Errorf("it ended with %v", err)
	}
	h, err := history.Read(&file)
	if err != nil || h.End.Error != "not every server was ready: the run was stopped" {
		t.Errorf("it ended with %q, error %v", h.End.Error, err)
	}
}

// telling is a cluster whose servers report some facts, but not all, when the run ends.
type telling struct {
	starting
	asked int
	epoch time.Time // the epoch that the caller passed
}

func (c *telling) RecordPanics() { c.asked++ }
func (c *telling) Hops(epoch time.Time) ([]history.Hop, error) {
	c.epoch = epoch
	return []history.Hop{{Operation: "1", Entry: &history.Entry{Server: "a"}}}, errors.New("read the audit log of a: line 7 is no JSON")
}

// A log that cannot be read may contain a loop. A log that is not searched may contain a panic.
// Without these logs, a run cannot pass.
func TestTheHistoryTellsWhatServersDoNotTell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	cluster := &telling{}
	if err := Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, cluster, recorder, Options{Status: t.Logf}); err == nil {
		t.Error("no error")
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(h.End.Error, "line 7 is no JSON") || len(h.Hops) != 1 {
		t.Errorf("it ended with %q, and %d hops; want it to say that some are missing, and the existing hop", h.End.Error, len(h.Hops))
	}
	if cluster.asked != 1 {
		t.Errorf("the logs were looked through for panics %d times, want once", cluster.asked)
	}
}
