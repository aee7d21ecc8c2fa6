package suite

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Every subject gets its own cluster. The cluster is held before the upgrade, and the upgrade is
// its next step. Both versions are fetched before.
func TestPlansOfClients(t *testing.T) {
	plans, err := (&Clients{Spec: run.Spec{From: "v1.36.3", To: "v1.37.1"}, Clients: DefaultClients()}).plans()
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
		"--clients is empty":                       {},
		"--clients names kubectl@v1.37.1 twice":    {Clients: []string{"kubectl@v1.37.1", "kubectl@v1.37.1"}},
		`--clients names "latest": write COMP`:     {Clients: []string{"latest"}},
		"--clients: kubectl \"latest\"":            {Clients: []string{"kubectl@latest"}},
		"names etcd@v3.6.8, which is not a client": {Clients: []string{"etcd@v3.6.8"}},
		"names foo@v1.0.0, which is not a client":  {Clients: []string{"foo@v1.0.0"}},
		"has a program for client-go of v0.":       {Clients: []string{"client-go@v0.1.0"}},
		`--focus "(": `:                            {Clients: DefaultClients(), Focus: "("},
		"no operation of the clients has such a":   {Clients: []string{"kubectl@v1.37.1"}, Focus: "^dynamic informer$"},
		"the binary given for it, /nonexistent":    {Clients: DefaultClients(), Spec: run.Spec{Binaries: binaries.Overrides{{Component: binaries.Kubectl, Version: "v1.37.1"}: "/nonexistent"}}},
		"kubectl@v1.30.14=/proc/self/exe: no serv": {Clients: DefaultClients(), Spec: run.Spec{Binaries: binaries.Overrides{{Component: binaries.Kubectl, Version: "v1.30.14"}: "/proc/self/exe"}}},
		"--from and --to are both v1.37.1":         {Clients: DefaultClients(), Spec: run.Spec{From: "v1.37.1", To: "v1.37.1"}},
		"--to v1.36.3 is older than":               {Clients: DefaultClients(), Spec: run.Spec{From: "v1.37.1", To: "v1.36.3"}},
	} {
		if _, err := c.plans(); err == nil || run.KindOf(err) != run.KindUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want wrong usage with %q", err, says)
		}
	}
}

// A binary that the user gives for a client is used for the client, and not for the servers.
func TestOwnBinariesOfClients(t *testing.T) {
	kubectl := binaries.Ref{Component: binaries.Kubectl, Version: "v1.36.3"}
	server := binaries.Ref{Component: binaries.KubeAPIServer, Version: "v1.37.1"}
	c := Clients{
		Clients: []string{"kubectl@v1.36.3", "client-go@v0.37.1"}, Focus: "^(get|dynamic informer)$",
		Spec: run.Spec{Binaries: binaries.Overrides{kubectl: "/proc/self/exe", server: "/proc/self/exe"}},
	}
	plans, err := c.plans()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.own) != 1 || c.own[kubectl] == "" || len(plans[0].Spec.Binaries) != 1 || plans[0].Spec.Binaries[server] == "" {
		t.Errorf("of clients: %v; of servers: %v", c.own, plans[0].Spec.Binaries)
	}
	if rows := c.rows(); len(rows) != 2 || rows[0].Name != "get" || rows[1].Program != "client-go" {
		t.Errorf("operations %+v", rows)
	}
	if got := c.needed("v1.37.1"); len(got) != 3 || got[2].Version != "v1.37.1" || got[2].Component != binaries.Kubectl {
		t.Errorf("needed: %v; kubectl of the newer server prepares and looks", got)
	}
}

// If the servers cannot be started, no operation looks as if it had been tried.
func TestClientsWithoutServers(t *testing.T) {
	t.Setenv(actVariable, "cannot run")
	c := Clients{Options: Options{Program: "/proc/self/exe", Out: t.TempDir(), Console: silent}, Clients: DefaultClients()}
	plans, err := c.plans()
	if err != nil {
		t.Fatal(err)
	}
	cells := c.cluster(t.Context(), plans[0], nil)
	want := 0
	for _, o := range c.operations {
		want += 2 * len(c.versions(o.Program))
	}
	if len(cells) != want || want == 0 {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	for _, cell := range cells {
		if cell.Did != reports.DidNotRun || !strings.Contains(cell.Reason, "start etcd: no space left") && !strings.Contains(cell.Reason, "takes part") {
			t.Fatalf("%+v", cell)
		}
	}
	if table := reports.NewClientsTable(reports.ClientsMetadata{Complete: true}, c.programs(), c.rows(), cells); table.Result != reports.ResultInconclusive {
		t.Errorf("a table without servers is %s", table.Result)
	}
}

// Without Node.js, the clients that need it are left out with the reason, and all others stay.
func TestClientsThatTakeNodeAreLeftOutWithoutIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c := Clients{Options: Options{Console: silent}, Clients: DefaultClients()}
	if _, err := c.plans(); err != nil {
		t.Fatal(err)
	}
	before := len(c.refs)
	left, err := c.leaveOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || !strings.HasPrefix(left[0], "client-node v") || !strings.Contains(left[0], "it takes Node.js and npm") {
		t.Errorf("left out: %q", left)
	}
	if len(c.refs) != before-1 || len(c.versions("client-node")) != 0 || len(c.versions("client-go")) == 0 {
		t.Errorf("clients %v", c.refs)
	}
	for _, row := range c.rows() {
		if row.Program == "client-node" {
			t.Errorf("%s is still there", row.Name)
		}
	}
	only := Clients{Options: Options{Console: silent}, Clients: []string{"client-node@v1.4.0"}}
	if _, err := only.plans(); err != nil {
		t.Fatal(err)
	}
	if _, err := only.leaveOut(t.Context()); err == nil || !strings.Contains(err.Error(), "no client is left: client-node v1.4.0") {
		t.Errorf("nothing but it: %v", err)
	}
}
