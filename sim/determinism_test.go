package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/tape"
)

var update = flag.Bool("update", false, "write testdata/hashes.txt again")

// eventful is a case with many events at the same time.
func eventful() *Case {
	inject := func(label string, f fault.Fault) scenario.Step {
		return scenario.Step{Action: scenario.Inject, Label: label, Fault: &f}
	}
	heal := func(label string) scenario.Step { return scenario.Step{Action: scenario.Heal, Label: label} }
	c := three(
		soak(6*time.Second),
		inject("slow", fault.Fault{Kind: fault.Latency, From: "c", To: "a", Latency: 200 * time.Millisecond, Jitter: 100 * time.Millisecond}),
		inject("hole", fault.Fault{Kind: fault.Timeout, From: "b", To: "a", Direction: fault.Down}),
		scenario.Step{Action: scenario.Restart, Server: "c"},
		soak(15*time.Second),
		heal("hole"),
		scenario.Step{Action: scenario.Kill, Server: "a"},
		inject("etcd", fault.Fault{Kind: fault.Cut, From: "b", To: fault.Etcd}),
		scenario.Step{Action: scenario.Define, Definition: &scenario.Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}},
		soak(20*time.Second),
		heal("etcd"),
		scenario.Step{Action: scenario.Start, Server: "a", Version: newer},
		heal("slow"),
		scenario.Step{Action: scenario.Pause, Server: "c"},
		soak(12*time.Second),
		scenario.Step{Action: scenario.Resume, Server: "c"},
		soak(30*time.Second),
	)
	verbs := []string{"list", "get", "create", "watch", "patch", history.VerbTable, "delete", "update"}
	for i := range 60 {
		r := Request{
			Step:    i % len(c.Steps),
			After:   time.Duration(i%7) * 700 * time.Millisecond,
			Server:  []string{"b", "c", "a"}[i%3],
			Request: workload.Request{Verb: verbs[i%len(verbs)], GVR: onlyNew, Name: fmt.Sprint("n", i%5), For: 3 * time.Second},
		}
		if i%10 == 9 {
			r.Verb, r.GVR, r.Path = history.VerbDiscovery, history.GVR{}, "/apis"
		}
		c.Requests = append(c.Requests, r)
	}
	return c
}

// hashes returns the hashes of the eventful case under every policy and several seeds.
func hashes(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, p := range proxy.Presets() {
		s := New(only(t, p))
		defer s.Close()
		for seed := range uint64(4) {
			r, err := s.Run(eventful(), tape.Seeded(seed), Options{})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %d %016x\n", p.Name, seed, r.Hash)
		}
	}
	return b.String()
}

const childEnv = "SKEWPROOF_TEST_HASHES"

// TestASeedMeansTheSameEverywhere compares the traces of this process with the recorded hashes, and
// with child processes that use one processor and several. The build flags and the number of
// processors of this process must make no difference.
func TestASeedMeansTheSameEverywhere(t *testing.T) {
	got := hashes(t)
	if os.Getenv(childEnv) != "" {
		fmt.Print("hashes:\n" + got)
		return
	}
	golden := filepath.Join("testdata", "hashes.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the traces differ from those in %s. If this change of behaviour is intended, write the file again: go test ./sim -run Everywhere -update\n%s", golden, got)
	}
	for _, procs := range []int{1, max(2, runtime.NumCPU())} {
		child := exec.Command(os.Args[0], "-test.run=^TestASeedMeansTheSameEverywhere$")
		child.Env = append(os.Environ(), childEnv+"=1", fmt.Sprintf("GOMAXPROCS=%d", procs), "GODEBUG=randautoseed=0")
		out, err := child.Output()
		if err != nil {
			t.Fatalf("with %d processors: %v\n%s", procs, err, out)
		}
		_, theirs, _ := bytes.Cut(out, []byte("hashes:\n"))
		if !bytes.HasPrefix(theirs, []byte(got)) {
			t.Errorf("with %d processors the traces differ:\n%s", procs, theirs)
		}
	}
}

// Earlier cases must not change how a simulator runs later cases.
func TestEarlierRunsLeaveNothingBehind(t *testing.T) {
	for _, p := range []proxy.Policy{proxy.Reference(), proxy.Upstream137(), proxy.Alpha128()} {
		used := New(only(t, p))
		defer used.Close()
		for seed := range uint64(3) {
			settled := eventful()
			settled.Settled = true
			for i, c := range []*Case{settled, eventful(), three(soak(time.Minute))} {
				again, err := used.Run(c, tape.Seeded(seed), Options{})
				if err != nil {
					t.Fatal(err)
				}
				fresh := New(only(t, p))
				first, err := fresh.Run(c, tape.Seeded(seed), Options{})
				if err != nil {
					t.Fatal(err)
				}
				fresh.Close()
				if first.Hash != again.Hash {
					t.Errorf("%s, seed %d, case %d: a used simulator gives another trace", p.Name, seed, i)
				}
				if !reflect.DeepEqual(emptied(first.History), emptied(again.History)) {
					t.Errorf("%s, seed %d, case %d: a used simulator gives another history", p.Name, seed, i)
				}
				used.Recycle(again)
				if again.History != nil {
					t.Error("a recycled history is still accessible")
				}
			}
		}
	}
}

// emptied sets empty lists to nil, so that they compare equal to missing lists.
func emptied(h *history.History) *history.History {
	for v, i := reflect.ValueOf(h).Elem(), 0; i < v.NumField(); i++ {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() == 0 {
			f.SetZero()
		}
	}
	return h
}

// A run from a recorded tape equals the run that recorded the tape.
func TestARecordedTapeIsTheSameRun(t *testing.T) {
	s := New(only(t, proxy.Reference()))
	defer s.Close()
	drawn := tape.Seeded(9)
	drawn.Record(true)
	first, err := s.Run(eventful(), drawn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Run(eventful(), tape.Of(drawn.Recorded()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if first.Hash != again.Hash {
		t.Error("the recorded tape gives another trace")
	}
}
