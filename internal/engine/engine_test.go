package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// What a server had answered before it was killed or paused is no evidence that anybody noticed.
// What had to wait until a pause was over is.
func TestAFaultOfAProcessTouchesWhatIsAskedMeanwhile(t *testing.T) {
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	w := &witness{Recorder: recorder}
	ask := func(from, to history.Time) {
		recorder.Operation(history.Operation{Server: "a", Start: from, End: to, Status: 200})
	}
	suffer := func(kind scenario.Action, from, to history.Time) {
		w.Fault(history.Fault{Kind: string(kind), Server: "a", Start: from, End: to})
	}
	ask(1, 2)
	suffer(scenario.Pause, 3, 4)
	ask(5, 6)
	suffer(scenario.Pause, 10, 20)
	ask(11, 25) // it was answered when the server ran again
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
		return history.Hop{Operation: operation, Server: server, Start: start, End: start + 100*time.Millisecond, Rerouted: rerouted}
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

// starting is a cluster that does not come up until its time is over.
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
	abandon(errors.New("etcd ended though nobody had asked it to"))
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
	if !strings.HasPrefix(h.End.Error, "etcd ended though nobody had asked it to") || !strings.Contains(h.End.Error, "connection refused") {
		t.Errorf("it ended with %q", h.End.Error)
	}
}

// telling is a cluster whose servers have something to say when the run is over, if not all of it.
type telling struct {
	starting
	asked int
}

func (c *telling) RecordPanics() { c.asked++ }
func (c *telling) Hops(time.Time) ([]history.Hop, error) {
	return []history.Hop{{Operation: "1", Server: "a"}}, errors.New("read the audit log of a: line 7 is no JSON")
}

// A log that cannot be read may have told of a loop, and one that nobody looks through, of a panic:
// without them, nothing is shown to be well.
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
		t.Errorf("it ended with %q, and %d accounts; want it to say that some are missing, and the one that there is", h.End.Error, len(h.Hops))
	}
	if cluster.asked != 1 {
		t.Errorf("the logs were looked through for panics %d times, want once", cluster.asked)
	}
}
