package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// dresser is a stage whose servers can be set up.
type dresser struct {
	stage
	refuses string // a server that starts with no setup
	dialled int
	silent  bool   // nobody dials any more
	lease   string // what every endpoint lease says
	dressed map[string]*scenario.Setup
}

func (d *dresser) Configure(server string, setup *scenario.Setup) error {
	d.acts = append(d.acts, "configure "+server+" "+setup.String())
	d.dressed[server] = setup
	return nil
}

func (d *dresser) StartServer(ctx context.Context, n, v string) error {
	if n == d.refuses && d.dressed[n] != nil {
		return &scenario.RefusedError{Server: n, Why: "I would rather not"}
	}
	return d.stage.StartServer(ctx, n, v)
}

func (d *dresser) Dialled(string, string) int {
	if !d.silent {
		d.dialled++
	}
	return d.dialled
}

func (d *dresser) Effect(_ context.Context, server string) (history.Effect, error) {
	return history.Effect{Server: server, Advertised: d.lease, Setup: d.dressed[server].String()}, nil
}

// dress carries out steps on servers a and b, of which the first may have a setup from the start.
func dress(t *testing.T, d *dresser, first *scenario.Setup, steps ...scenario.Step) (*history.History, error) {
	t.Helper()
	d.dressed = map[string]*scenario.Setup{}
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a", Version: "v1", Setup: first}, {Name: "b", Version: "v1"}}, Steps: steps}
	return performPlan(t, t.Context(), d, &d.stage, plan)
}

func restart(server string, setup *scenario.Setup) scenario.Step {
	return scenario.Step{Action: scenario.Restart, Server: server, Setup: setup}
}

func TestASetupIsForOneStart(t *testing.T) {
	d := &dresser{}
	h, err := dress(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustStranger}), restart("b", nil), restart("b", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"stop b", "configure b its peer authority: stranger", "start b", "stop b", "configure b ", "start b", "replace b"}
	if !slices.Equal(d.acts, want) {
		t.Errorf("the cluster was asked for %q, want %q", d.acts, want)
	}
	if len(h.Faults) != 1 {
		t.Fatalf("faults %+v, want the one way from b to a", h.Faults)
	}
	f := h.Faults[0]
	if f.Kind != history.FaultMisconfiguration || f.From != "b" || f.To != "a" || !f.Blocks || !f.Effective() || f.Distrust != history.DistrustServing {
		t.Errorf("fault %+v", f)
	}
	// It must have begun when the old process had ended, and ended before the next one began to end.
	if f.Start < h.Steps[0].Start || f.End > h.Steps[1].End || f.Start > f.End {
		t.Errorf("it lasted from %s to %s; steps %+v", f.Start, f.End, h.Steps)
	}
	if len(h.Effects) != 1 || h.Effects[0].Server != "b" || h.Effects[0].Setup == "" {
		t.Errorf("effects %+v, want what was seen of b", h.Effects)
	}
}

// What the proxy is there for cannot be asked of a server whose proxy is off until its process is gone; a way may be whole again as soon as it
// is about to go.
func TestAServerIsAsItWasToItsEnd(t *testing.T) {
	d := &dresser{}
	h, err := dress(t, d, &scenario.Setup{Proxy: scenario.Off}, restart("a", nil))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.acts, []string{"configure a its proxy switched off", "stop a", "configure a ", "start a"}) {
		t.Errorf("the cluster was asked for %q", d.acts)
	}
	ends := map[string]history.Time{}
	for _, f := range h.Faults {
		ends[f.Server] = f.End
	}
	if len(h.Faults) != 2 || ends["a"] < ends[""] || ends["a"] > h.Steps[0].End {
		t.Errorf("faults %+v: want the way to a to end before a's own, and both in the step", h.Faults)
	}
}

func TestASetupOfTheFirstStartLastsUntilTheEnd(t *testing.T) {
	d := &dresser{}
	h, err := dress(t, d, &scenario.Setup{Proxy: scenario.Off}, scenario.Step{Action: scenario.Soak, For: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.acts, []string{"configure a its proxy switched off"}) {
		t.Errorf("the cluster was asked for %q", d.acts)
	}
	var server, way bool
	for _, f := range h.Faults {
		server = server || f.Server == "a" && f.Kind == history.FaultProxyOff
		way = way || f.From == "b" && f.To == "a" && f.Evidence.Seen == 1 // no lease was there
		if d.loadEnded == 0 || f.End < d.loadEnded {
			t.Errorf("it ended at %s, though something was asked until %s: fault %+v", f.End, d.loadEnded, f)
		}
	}
	if len(h.Faults) != 2 || !server || !way {
		t.Errorf("faults %+v, want a's proxy off, and no way from b to it", h.Faults)
	}
}

// A lease that is there although it should not be shows that the setup did not have its effect: such a fault has touched nothing.
func TestALeaseThatIsAgainstTheSetupIsNoEvidence(t *testing.T) {
	d := &dresser{lease: "192.0.2.1:6443"}
	h, err := dress(t, d, &scenario.Setup{Proxy: scenario.Off}, scenario.Step{Action: scenario.Soak, For: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range h.Faults {
		if f.To == "a" && f.Evidence.Seen != 0 {
			t.Errorf("fault %+v", f)
		}
	}
}

// Who dialled before a way was hindered, and what was asked of a server before it was set up wrong, met nothing of it.
func TestWhatWasBeforeASetupIsNoEvidence(t *testing.T) {
	d := &dresser{silent: true, dialled: 7}
	h, err := dress(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustStranger}), restart("b", nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Faults) != 1 || h.Faults[0].Evidence.Affected != 0 || h.Faults[0].Effective() {
		t.Errorf("faults %+v, want one that touched nothing", h.Faults)
	}
	asked := &asked{dresser{silent: true}}
	asked.dressed = map[string]*scenario.Setup{}
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a", Setup: &scenario.Setup{Proxy: scenario.Off}}, {Name: "b"}}}
	if h, err = performPlan(t, t.Context(), asked, &asked.stage, plan); err != nil {
		t.Fatal(err)
	}
	for _, f := range h.Faults {
		if f.Server == "a" && (f.Evidence.Requests != 0 || f.Effective()) {
			t.Errorf("fault %+v, want one that touched nothing", f)
		}
	}
	if len(h.Faults) != 2 {
		t.Errorf("faults %+v, want a's proxy off, and no way from b to it", h.Faults)
	}
}

// asked is a dresser whose server was asked something before it was set up.
type asked struct{ dresser }

func (a *asked) Configure(server string, setup *scenario.Setup) error {
	a.record.Operation(history.Operation{Server: server, Status: 200})
	return a.dresser.Configure(server, setup)
}

func TestAServerThatRefusesItsSetupIsDownUntilItIsStartedWithAnother(t *testing.T) {
	d := &dresser{refuses: "b"}
	h, err := dress(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustMissing}), restart("b", nil), restart("b", nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"stop b", "configure b its peer authority: missing", "configure b ", "start b", "replace b"}; !slices.Equal(d.acts, want) {
		t.Errorf("the cluster was asked for %q, want %q", d.acts, want)
	}
	if len(h.Faults) != 1 || h.Faults[0].Server != "b" || h.Faults[0].Evidence.Refused != 1 || !strings.Contains(h.Faults[0].Detail, "refused to start") {
		t.Errorf("faults %+v, want the one refusal", h.Faults)
	}
	if len(h.Effects) != 0 {
		t.Errorf("effects %+v of a process that never was", h.Effects)
	}
}

// Whoever will not start with a certificate that nobody could trust has done what is asked of it: the record must tell such a refusal from others.
func TestARefusalTellsWhetherItIsOfACertificate(t *testing.T) {
	for _, c := range []struct {
		setup scenario.Setup
		want  history.Distrust
	}{
		{scenario.Setup{Serving: scenario.CertificateExpired}, history.DistrustServing},
		{scenario.Setup{FrontProxy: scenario.CertificateStranger}, history.DistrustFrontProxy},
		{scenario.Setup{PeerCA: scenario.TrustMissing}, ""},
		{scenario.Setup{Advertise: scenario.AdvertiseWrong}, ""},
	} {
		h, err := dress(t, &dresser{refuses: "b"}, nil, restart("b", &c.setup), restart("b", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Faults) != 1 || h.Faults[0].Server != "b" || h.Faults[0].Distrust != c.want {
			t.Errorf("%s: faults %+v, want one refusal with %q", &c.setup, h.Faults, c.want)
		}
	}
}

func TestAClusterThatCannotSetServersUpIsNotAskedTo(t *testing.T) {
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a"}, {Name: "b"}}, Steps: []scenario.Step{restart("b", &scenario.Setup{Proxy: scenario.Off})}}
	s := &stage{}
	_, err := performPlan(t, t.Context(), s, s, plan)
	if err == nil || !strings.Contains(err.Error(), "cannot start servers with a setup") || len(s.acts) != 0 {
		t.Errorf("got %v, and it was asked for %q", err, s.acts)
	}
}
