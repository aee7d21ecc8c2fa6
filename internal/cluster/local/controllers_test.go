package local

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

func TestControllersArguments(t *testing.T) {
	args := ControllersArguments(Files{Keys: "keys"}, false)
	hasFlags(t, args, map[string]string{
		"kubeconfig": "keys/controllers.kubeconfig", "authentication-kubeconfig": "keys/controllers.kubeconfig", "authorization-kubeconfig": "keys/controllers.kubeconfig",
		"bind-address": "198.18.0.2", "secure-port": "10257", "use-service-account-credentials": "true", "leader-elect": "false",
		"root-ca-file": "keys/ca.crt", "client-ca-file": "keys/ca.crt", "service-account-private-key-file": "keys/service-account.key",
	})
}

func TestMigrationsAreSwitchedOnWhereTheyAreOff(t *testing.T) {
	for version, want := range map[string]int{"v1.34.4": 0, "v1.35.4": 1, "v1.36.3": 1, "v1.37.1": 0, "v1.38.0-alpha.0.57": 0} {
		if got := migratorGate(version); len(got) != want {
			t.Errorf("%s: %q", version, got)
		}
	}
}

func TestCandidatesHaveHostsAndFilesOfTheirOwn(t *testing.T) {
	servers := make([]history.Server, MaxServers)
	for i := range servers {
		servers[i].Name = scenario.ServerName(i)
	}
	var all candidates
	for i, s := range servers {
		r := all.of(s.Name, i)
		if r != all.of(s.Name, i) {
			t.Errorf("%s: another one when it is asked for again", s.Name)
		}
		hasFlags(t, r.arguments(Files{Keys: "keys"}), map[string]string{
			"kubeconfig": "keys/kcm-" + s.Name + ".kubeconfig", "bind-address": r.address().Addr().String(), "leader-elect": "true",
		})
		for _, other := range all.list() {
			if other != r && other.subnet.Overlaps(r.subnet) {
				t.Errorf("%s shares %s with %s", r.name, r.subnet, other.name)
			}
		}
		for _, p := range Places(servers) {
			if p.Subnet.Overlaps(r.subnet) || testsHost.Overlaps(r.subnet) || controllersHost.Overlaps(r.subnet) {
				t.Errorf("%s shares %s with another host", r.name, r.subnet)
			}
		}
	}
}

func TestControllersThatEndAreStartedAgainAFewTimes(t *testing.T) {
	lost := make(chan string, 2)
	begun := 0
	c := &Cluster{config: Config{Failed: func(part string, err error) { lost <- part + ": " + err.Error() }, Status: t.Logf}}
	r := &c.controllers
	r.begin = func() (*process, error) {
		begun++
		p := shell(t, "echo 'unexpected EOF'; exit 1")
		p.name = ProgramControllers
		return p, nil
	}
	r.program = dependencyOf(ProgramControllers, shell(t, "exit 1"))
	go r.program.watch(func(d *dependency) { c.restartControllers(r, d) })
	if got := <-lost; !strings.HasPrefix(got, "kube-controller-manager: ") || !strings.Contains(got, "exit status 1") || !strings.Contains(got, "unexpected EOF") {
		t.Errorf("told: %s", got)
	}
	if begun != controllersRestarts {
		t.Errorf("it was started again %d times, want %d", begun, controllersRestarts)
	}
}

func TestControllersThatWereStoppedAreNotStartedAgain(t *testing.T) {
	c := &Cluster{config: Config{Status: t.Logf}}
	r := &c.controllers
	r.begin = func() (*process, error) {
		t.Error("it was started again")
		return shell(t, "exit 1"), nil
	}
	asked := dependencyOf(ProgramControllers, shell(t, "exec sleep 1000"))
	r.program = asked
	if err := c.StopControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked.watch(func(d *dependency) { c.restartControllers(r, d) })
	// If a program ends by itself while it is being replaced, it no longer belongs to the run.
	replaced := dependencyOf(ProgramControllers, shell(t, "exit 1"))
	replaced.watch(func(d *dependency) { c.restartControllers(r, d) })
}

// The metrics of the controllers are saved before they end. A run continues without them.
func TestMetricsAreKeptWhenControllersEnd(t *testing.T) {
	answers := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers)
		_, _ = w.Write([]byte("workqueue_depth 1\n"))
	}))
	defer server.Close()
	files := Files{Logs: t.TempDir()}
	for n, end := range []func(*Cluster) error{
		func(c *Cluster) error { return c.StopControllers(t.Context()) },
		func(c *Cluster) error { c.controllers.close(); return nil },
	} {
		c := &Cluster{config: Config{Status: t.Logf}}
		r := &c.controllers
		told := ""
		r.status = func(format string, args ...any) { told = fmt.Sprintf(format, args...) }
		for _, answers = range []int{http.StatusOK, http.StatusForbidden} {
			file := files.metrics("controllers", 10*n+answers)
			r.measure = func(ctx context.Context) error { return saveMetrics(ctx, server.Client(), server.URL+"/metrics", file) }
			r.program = dependencyOf(ProgramControllers, shell(t, "exec sleep 1000"))
			if err := end(c); err != nil || r.program != nil {
				t.Fatalf("%v, still there: %t", err, r.program != nil)
			}
			content, _ := os.ReadFile(file)
			if kept := answers == http.StatusOK; kept != (string(content) == "workqueue_depth 1\n") || kept != (told == "") {
				t.Errorf("answered %d: %q is in the logs; reported %q", answers, content, told)
			}
		}
	}
}
