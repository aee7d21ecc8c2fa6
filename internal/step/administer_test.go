package step_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
)

// administrated is a fake with an etcd.
type administrated struct{ fake }

func (a *administrated) CompactEtcd(context.Context) (string, error) {
	return "compacted at 7", a.act("compact")
}
func (a *administrated) DefragmentEtcd(context.Context) (string, error) {
	return "", a.act("defragment")
}
func (a *administrated) DeleteLease(_ context.Context, server string) (string, error) {
	return "deleted that of " + server, a.act("delete lease of " + server)
}
func (a *administrated) GrantDiscovery(_ context.Context, granted bool) (string, error) {
	return "", a.act(fmt.Sprintf("discovery %t", granted))
}

func TestWhatAnAdministratorDoesIsRecorded(t *testing.T) {
	a := &administrated{}
	err := performWith(t, t.Context(), config(&a.fake, a), twoServers,
		scenario.Step{Action: scenario.CompactEtcd}, scenario.Step{Action: scenario.DefragmentEtcd}, at(scenario.DeleteLease, "b"),
		scenario.Step{Action: scenario.WithdrawDiscovery}, scenario.Step{Action: scenario.GrantDiscovery}, at(scenario.Restart, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var effects []string
	for _, s := range a.steps {
		effects = append(effects, s.Effect+string(s.Discovery))
	}
	if got := strings.Join(effects, "|"); got != "compacted at 7||deleted that of b|withdrawn|granted|" {
		t.Errorf("effects %s", got)
	}
	if got := strings.Join(a.done(), ", "); !strings.HasPrefix(got, "compact, defragment, delete lease of b, discovery false, discovery true, replace a") {
		t.Errorf("it did %s", got)
	}
}

func TestABackendWithoutAnEtcdRefusesAtOnce(t *testing.T) {
	f := &fake{}
	if err := perform(t, f, at(scenario.Restart, "a"), scenario.Step{Action: scenario.CompactEtcd}); err == nil || len(f.done()) > 0 {
		t.Errorf("error %v after %v", err, f.done())
	}
}

func TestALeaseOfNobody(t *testing.T) {
	a := &administrated{}
	if err := performWith(t, t.Context(), config(&a.fake, a), twoServers, at(scenario.DeleteLease, "z")); err == nil {
		t.Error("it deleted the lease of no server")
	}
}
