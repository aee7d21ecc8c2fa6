package workload_test

import (
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

// The real sender and the simulator get the same choices. Their records of the requests must be the
// same, request by request.
func TestBothSendersAskForTheSame(t *testing.T) {
	plan := []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}
	for _, profile := range scenario.Traffics {
		t.Run(string(profile), func(t *testing.T) {
			qps := 60.0
			if profile == scenario.SparseTraffic {
				qps *= 50
			}
			simulated, choices := simulate(t, plan, &sim.Load{QPS: qps, Traffic: profile})
			if len(simulated) < 100 {
				t.Fatalf("%d requests are too few to compare", len(simulated))
			}
			real := sendAll(t, plan, profile, choices, len(simulated))
			for i := range simulated {
				if simulated[i] != real[i] {
					t.Fatalf("request %d is\n%s in the simulator, and\n%s on a real server", i+1, simulated[i], real[i])
				}
			}
		})
	}
}

// source is a recorded tape as choices.
type source struct{ *tape.Tape }

func (s source) IntN(n int) int { return s.Choose(tape.Workload, n) }

// simulate returns the requests of the load in a quiet run, in the order of sending, and the
// choices that it made.
func simulate(t *testing.T, plan []scenario.Server, load *sim.Load) ([]string, *tape.Tape) {
	t.Helper()
	s := sim.New(sim.Setup{
		Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return proxy.Reference(), true },
	})
	defer s.Close()
	drawn := tape.Seeded(1)
	drawn.Record(true)
	c := &sim.Case{Servers: plan, Steps: []scenario.Step{{Action: scenario.Soak, For: 10 * time.Second}}, Load: load}
	result, err := s.Run(c, drawn, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	number := func(op history.Operation) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(op.ID, "op-"))
		return n
	}
	all := result.History.Operations
	slices.SortFunc(all, func(a, b history.Operation) int { return cmp.Compare(number(a), number(b)) })
	return lines(load.Traffic, all), tape.Of(drawn.Recorded())
}

// lines returns operations as text, without those that follow from an answer, because the answers
// differ here.
func lines(profile scenario.Traffic, all []history.Operation) (told []string) {
	for _, op := range all {
		nextPage := strings.Contains(op.Path, "continue=")
		preferred := profile == scenario.DiscoveryTraffic && op.Verb == "list" && op.Client == workload.ClientREST && op.Accept == ""
		again := (op.Verb == "get" || strings.HasSuffix(op.Path, "?dryRun=All&fieldValidation=Warn")) && workload.Created(op.Name) && !strings.HasPrefix(op.Name, "skewproof-"+op.Server+"-") // to compare the answers
		if nextPage || preferred || again {
			continue
		}
		if op.Verb == "create" && op.Subresource == "" {
			op.Name = "" // the name is in the body
		}
		told = append(told, fmt.Sprintf("%s of %s with %s: %s %s/%s %q %q at %s, accepting %q, rerouted: %t",
			op.User, op.Server, op.Client, op.Verb, op.GVR, op.Subresource, op.Namespace, op.Name, op.Path, op.Accept, op.Rerouted))
	}
	return told
}

// recorder keeps operations. Its requests are sent one after another.
type recorder struct{ operations []history.Operation }

func (r *recorder) Operation(o history.Operation) { r.operations = append(r.operations, o) }
func (r *recorder) Document(history.Document)     {}
func (r *recorder) HasDocument(string) bool       { return false }
func (r *recorder) Now() history.Time             { return history.Time(len(r.operations)) }

// sendAll sends n requests with client-go, according to the choices, to a server that answers 404
// to all.
func sendAll(t *testing.T, plan []scenario.Server, profile scenario.Traffic, choices *tape.Tape, n int) []string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var identities []traffic.Identity
	for _, user := range workload.Users() {
		identities = append(identities, traffic.Identity{Name: user, User: user,
			Config: rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca}}})
	}
	var targets []traffic.Target
	var lanes []*workload.Chooser
	documents := map[string]history.Document{}
	for _, s := range plan {
		v, err := recorded.Get(s.Version)
		if err != nil {
			t.Fatal(err)
		}
		documents[s.Name] = v.Document
		targets = append(targets, traffic.Target{Server: s.Name, URL: server.URL})
		lane := workload.NewChooser(workload.Options{
			Lane: s.Name, Choices: source{choices}, Profile: profile, Can: func(r *workload.Request) bool { return r.Verb != history.VerbOpenAPI },
		})
		lanes = append(lanes, lane)
	}
	for _, lane := range lanes {
		lane.Use(workload.Classify(documents))
	}
	record := &recorder{}
	clients, err := traffic.NewClients(targets, identities, record)
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	for i := range n {
		at := i % len(lanes)
		clients.Send(context.Background(), plan[at].Name, lanes[at].Next(), history.PurposeLoad, workload.Timeout)
	}
	return lines(profile, record.operations)
}

// An upgrade with a forged header is answered as an upgrade, and so must be known as one.
func TestAForgedUpgradeIsAnUpgrade(t *testing.T) {
	for want, r := range map[string]workload.Request{
		workload.ClientSocket: {Verb: "watch", Upgrade: true, Forged: workload.ForgedHop},
		history.ClientSPDY:    {Verb: "watch", Upgrade: true, Protocol: workload.ProtocolSPDY, Forged: workload.ForgedHop},
		workload.ClientForger: {Verb: "watch", Forged: workload.ForgedHop},
	} {
		if got := r.Sender(); got != want {
			t.Errorf("%s is sent by %s, want %s", &r, got, want)
		}
	}
}
