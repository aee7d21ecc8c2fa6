package suite

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Every subject gets its own cluster. The cluster is held before the upgrade, and the upgrade is
// its next step. Both versions are fetched before.
func TestPlansOfClients(t *testing.T) {
	plans, err := (&Clients{Spec: run.Spec{From: "v1.36.3", To: "v1.37.1"}, Kubectl: DefaultKubectl}).plans()
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for _, p := range plans {
		subjects = append(subjects, p.Spec.Subject)
		if !p.Spec.Keep || !p.Spec.NoLoad || p.Spec.At == nil || *p.Spec.At != 1 {
			t.Errorf("%s: it is not held after its first step: %+v", p.Spec.Subject, p.Spec)
		}
		if got := strings.Join(p.Schedule.Versions(), " "); got != "v1.36.3 v1.37.1" || p.Schedule.ControllerVersions()[0] != "v1.36.3" {
			t.Errorf("%s: versions %s, controllers %s", p.Spec.Subject, got, p.Schedule.ControllerVersions())
		}
		if next := p.Schedule.Steps[1]; next.Action != scenario.Replace || next.Server != newer || next.Version != "v1.37.1" {
			t.Errorf("%s: the next step is %s", p.Spec.Subject, next)
		}
	}
	if got := strings.Join(subjects, " "); got != "none builtin reference" {
		t.Errorf("subjects %s", got)
	}
}

func TestWrongClients(t *testing.T) {
	for says, c := range map[string]Clients{
		"--kubectl is empty":               {},
		"--kubectl names v1.37.1 twice":    {Kubectl: []string{"v1.37.1", "v1.37.1"}},
		"--kubectl: ":                      {Kubectl: []string{"latest"}},
		"--from and --to are both v1.37.1": {Kubectl: DefaultKubectl, Spec: run.Spec{From: "v1.37.1", To: "v1.37.1"}},
		"--to v1.36.3 is older than":       {Kubectl: DefaultKubectl, Spec: run.Spec{From: "v1.37.1", To: "v1.36.3"}},
	} {
		if _, err := c.plans(); err == nil || run.KindOf(err) != run.KindUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want wrong usage with %q", err, says)
		}
	}
}

// If the servers cannot be started, no cell looks as if it had been tried.
func TestClientsWithoutServers(t *testing.T) {
	t.Setenv(actVariable, "cannot run")
	c := Clients{Options: Options{Program: "/proc/self/exe", Out: t.TempDir(), Console: silent}, Kubectl: DefaultKubectl}
	plans, err := c.plans()
	if err != nil {
		t.Fatal(err)
	}
	cells := c.cluster(t.Context(), plans[0], nil)
	if len(cells) != 2*len(rows())*len(DefaultKubectl) {
		t.Errorf("%d cells", len(cells))
	}
	for _, cell := range cells {
		if cell.Did != reports.DidNotRun || !strings.Contains(cell.Reason, "start etcd: no space left") && !strings.Contains(cell.Reason, "takes part") {
			t.Fatalf("%+v", cell)
		}
	}
	if table := reports.NewClientsTable(reports.ClientsMetadata{Complete: true}, c.Kubectl, rows(), cells); table.Result != reports.ResultInconclusive {
		t.Errorf("a table without servers is %s", table.Result)
	}
}
