package step_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// configure carries out steps on servers a and b. Server a may have a setup from the start.
func configure(t *testing.T, c *configurable, first *scenario.Setup, steps ...scenario.Step) {
	t.Helper()
	servers := []scenario.Server{{Name: "a", Version: "v1", Setup: first}, {Name: "b", Version: "v1"}}
	if err := performWith(t, t.Context(), config(&c.fake, seen{c}), servers, steps...); err != nil {
		t.Fatal(err)
	}
}

func restart(server string, setup *scenario.Setup) scenario.Step {
	return scenario.Step{Action: scenario.Restart, Server: server, Setup: setup}
}

func TestASetupIsForOneStart(t *testing.T) {
	d := &configurable{}
	configure(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustStranger}), restart("b", nil), restart("b", nil))
	want := []string{"stop b", "configure b its peer authority: stranger", "start b", "stop b", "configure b ", "start b", "replace b"}
	if !slices.Equal(d.done(), want) {
		t.Errorf("the cluster was asked for %q, want %q", d.done(), want)
	}
	if len(d.faults) != 1 {
		t.Fatalf("faults %+v, want the one path from b to a", d.faults)
	}
	f := d.faults[0]
	if f.Kind != history.FaultMisconfiguration || f.From != "b" || f.To != "a" || !f.Blocks || !f.Effective() || f.Distrust != history.DistrustServing {
		t.Errorf("fault %+v", f)
	}
	// It must begin after the old process has ended, and end before the next one begins to end.
	if f.Start < d.steps[0].Start || f.End > d.steps[1].End || f.Start > f.End {
		t.Errorf("it lasted from %s to %s; steps %+v", f.Start, f.End, d.steps)
	}
	if len(d.effects) != 1 || d.effects[0].Server != "b" || d.effects[0].Setup == "" {
		t.Errorf("effects %+v, want the effect of b", d.effects)
	}
}

// A server whose proxy is off has no proxy until its process ends. A path to it may work again when
// the process begins to end.
func TestAServerIsAsItWasToItsEnd(t *testing.T) {
	d := &configurable{}
	configure(t, d, &scenario.Setup{Proxy: scenario.Off}, restart("a", nil))
	if !slices.Equal(d.done(), []string{"configure a its proxy switched off", "stop a", "configure a ", "start a"}) {
		t.Errorf("the cluster was asked for %q", d.done())
	}
	ends := map[string]history.Time{}
	for _, f := range d.faults {
		ends[f.Server] = f.End
	}
	if len(d.faults) != 2 || ends["a"] < ends[""] || ends["a"] > d.steps[0].End {
		t.Errorf("faults %+v: want the path to a to end before a's own, and both in the step", d.faults)
	}
}

// A misconfiguration lasts as long as the load, which is longer than the steps.
func TestASetupOfTheFirstStartLastsUntilTheEnd(t *testing.T) {
	d := &configurable{}
	servers := []scenario.Server{{Name: "a", Setup: &scenario.Setup{Proxy: scenario.Off}}, {Name: "b"}}
	var e step.Executor
	if err := e.Prepare(config(&d.fake, seen{d}), servers, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	d.now += time.Minute // the load ends
	e.Finish()
	if !slices.Equal(d.acts, []string{"configure a its proxy switched off"}) {
		t.Errorf("the cluster was asked for %q", d.acts)
	}
	var server, path bool
	for _, f := range d.faults {
		server = server || f.Server == "a" && f.Kind == history.FaultProxyOff
		path = path || f.From == "b" && f.To == "a" && f.Evidence.Seen == 1 // the lease did not exist
		if f.End != d.now {
			t.Errorf("it ended at %s, though something was asked until %s: fault %+v", f.End, d.now, f)
		}
	}
	if len(d.faults) != 2 || !server || !path {
		t.Errorf("faults %+v, want a's proxy off, and no path from b to it", d.faults)
	}
}

// The executor did not carry out the first start that the server refused. Refused records that
// refusal.
func TestARefusalOfTheFirstStartIsOnRecord(t *testing.T) {
	d := &configurable{}
	servers := []scenario.Server{{Name: "a", Setup: &scenario.Setup{Serving: scenario.CertificateExpired}}, {Name: "b"}}
	var e step.Executor
	if err := e.Prepare(config(&d.fake, seen{d}), servers, nil); err != nil {
		t.Fatal(err)
	}
	e.Refused("a")
	e.Refused("a") // a second call changes nothing
	e.Finish()
	if len(d.faults) != 1 || d.faults[0].Server != "a" || d.faults[0].Evidence.Refused != 1 || d.faults[0].Distrust != history.DistrustServing || len(d.effects) != 0 {
		t.Errorf("faults %+v, effects %+v; want the one refusal", d.faults, d.effects)
	}
}

// A lease that should not exist shows that the setup did not have its effect. Such a fault has no
// effect.
func TestALeaseThatIsAgainstTheSetupIsNoEvidence(t *testing.T) {
	d := &configurable{lease: "192.0.2.1:6443"}
	configure(t, d, &scenario.Setup{Proxy: scenario.Off}, scenario.Step{Action: scenario.Soak, For: time.Millisecond})
	for _, f := range d.faults {
		if f.To == "a" && f.Evidence.Seen != 0 {
			t.Errorf("fault %+v", f)
		}
	}
}

// A connection from before a path was blocked does not count as evidence. Neither does a request to
// a server from before its wrong setup.
func TestWhatWasBeforeASetupIsNoEvidence(t *testing.T) {
	d := &configurable{silent: true, dialled: 7}
	configure(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustStranger}), restart("b", nil))
	if len(d.faults) != 1 || d.faults[0].Evidence.Affected != 0 || d.faults[0].Effective() {
		t.Errorf("faults %+v, want one without effect", d.faults)
	}
	d = &configurable{silent: true, fake: fake{asked: map[string]int{"a": 5}}}
	configure(t, d, &scenario.Setup{Proxy: scenario.Off})
	for _, f := range d.faults {
		if f.Server == "a" && (f.Evidence.Requests != 0 || f.Effective()) {
			t.Errorf("fault %+v, want one without effect", f)
		}
	}
	if len(d.faults) != 2 {
		t.Errorf("faults %+v, want a's proxy off, and no path from b to it", d.faults)
	}
}

func TestAServerThatRefusesItsSetupIsDownUntilItIsStartedWithAnother(t *testing.T) {
	d := &configurable{refuses: "b"}
	configure(t, d, nil, restart("b", &scenario.Setup{PeerCA: scenario.TrustMissing}), restart("b", nil), restart("b", nil))
	if want := []string{"stop b", "configure b its peer authority: missing", "configure b ", "start b", "replace b"}; !slices.Equal(d.done(), want) {
		t.Errorf("the cluster was asked for %q, want %q", d.done(), want)
	}
	if len(d.faults) != 1 || d.faults[0].Server != "b" || d.faults[0].Evidence.Refused != 1 || !strings.Contains(d.faults[0].Detail, "refused to start") {
		t.Errorf("faults %+v, want the one refusal", d.faults)
	}
	if len(d.effects) != 0 {
		t.Errorf("effects %+v of a process that never was", d.effects)
	}
}

// A server that refuses to start with an untrusted certificate is right. So the record must
// distinguish such a refusal from others.
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
		d := &configurable{refuses: "b"}
		configure(t, d, nil, restart("b", &c.setup), restart("b", nil))
		if len(d.faults) != 1 || d.faults[0].Server != "b" || d.faults[0].Distrust != c.want {
			t.Errorf("%s: faults %+v, want one refusal with %q", &c.setup, d.faults, c.want)
		}
	}
}
