package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// ProgramTests is the program that runs Kubernetes' own end-to-end tests.
const ProgramTests = "e2e.test"

// testsHost is the /30 between the run and the host of the tests, after those of the servers.
var testsHost = netip.MustParsePrefix("198.18.1.0/30")

// interruptedFor is how long tests may take to write their results after an interrupt. An
// interrupted spec still removes the objects that it created.
const interruptedFor = 2 * time.Minute

// tests is e2e.test on its own host. Its connections go through the clients' links.
type tests struct {
	mu      sync.Mutex
	host    *sandbox.Host // nil until it is needed
	program *process      // nil if it does not run
}

// StartTests implements [cluster.Tester].
func (c *Cluster) StartTests(_ context.Context, version, through string, t scenario.Tests) error {
	c.tests.mu.Lock()
	defer c.tests.mu.Unlock()
	if err := c.startTests(version, through, t); err != nil {
		return fmt.Errorf("start %s %s: %w", ProgramTests, version, err)
	}
	return nil
}

func (c *Cluster) startTests(version, through string, t scenario.Tests) error {
	r, files := &c.tests, c.config.Files
	binary, ok := c.config.Tests[version]
	if !ok {
		return errors.New("no binary of that version was prepared")
	}
	if r.program != nil {
		return errors.New("tests run already")
	}
	to, err := c.wayThrough(through, steadyAddress) // a spec fails if one of its requests is cut off
	if err != nil {
		return err
	}
	if err := writeKubeconfig(files.testsKubeconfig(), "admin", files, to); err != nil {
		return err
	}
	if r.host == nil {
		if r.host, err = sandbox.NewHost("tests", testsHost); err != nil {
			return err
		}
	}
	r.program, err = startProcess(ProgramTests, binary, TestsArguments(files, t), files.log("tests"), r.host.Start)
	return err
}

// wayThrough is the path of a client through a server, or through the load balancer at that address
// if the name is empty.
func (c *Cluster) wayThrough(server string, balanced netip.AddrPort) (way, error) {
	if server == "" {
		return way{balancerName, balanced}, nil
	}
	s, err := c.Find(server)
	if err != nil {
		return way{}, err
	}
	return way{server, s.place.Advertised}, nil
}

// AwaitTests implements [cluster.Tester].
func (c *Cluster) AwaitTests(ctx context.Context, limit time.Duration) error {
	c.tests.mu.Lock()
	defer c.tests.mu.Unlock()
	program := c.tests.program
	if program == nil {
		return errors.New("no tests run")
	}
	c.tests.program = nil
	if err := lifecycle.AwaitEnd(ctx, program, limit); err != nil {
		// When Ginkgo is interrupted, it writes the results that it has.
		err = errors.Join(err, program.signal(syscall.SIGINT))
		if ctx.Err() != nil || lifecycle.AwaitEnd(ctx, program, interruptedFor) != nil {
			err = errors.Join(err, program.signal(syscall.SIGKILL))
			<-program.done
		}
		return err
	}
	if _, err := os.Stat(c.config.Files.TestResults()); err != nil {
		return fmt.Errorf("%s left no results: %w; it ended: %s", ProgramTests, err, lifecycle.Ending(program))
	}
	return nil
}

func (r *tests) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program != nil {
		if r.program.signal(syscall.SIGKILL) == nil {
			<-r.program.done
		}
		r.program = nil
	}
	if r.host != nil {
		r.host.Close()
		r.host = nil
	}
}

func (f Files) testReports() string     { return filepath.Join(f.Logs, "e2e") }
func (f Files) testsKubeconfig() string { return f.key("tests.kubeconfig") }

// TestResults is the file, in JUnit XML, to which [ProgramTests] writes its results. Source:
// k8s.io/kubernetes test/e2e/framework/test_context.go, AfterReadingAllFlags
func (f Files) TestResults() string { return filepath.Join(f.testReports(), "junit_01.xml") }

// TestsArguments is the command line of Kubernetes' own end-to-end tests, without the program's
// name. There are no nodes. Their number is given, because otherwise the tests refuse to begin
// without nodes.
func TestsArguments(f Files, t scenario.Tests) []string {
	args := []string{
		"--kubeconfig=" + f.testsKubeconfig(),
		"--provider=skeleton",
		"--num-nodes=0",
		"--allowed-not-ready-nodes=-1", // do not wait for nodes and system pods
		"--disable-log-dump=true",
		"--report-dir=" + f.testReports(),
		"--ginkgo.no-color",
		"--ginkgo.seed=1",      // the same order every time
		"--ginkgo.timeout=24h", // [Cluster.AwaitTests] ends them earlier
	}
	for _, spec := range t.Specs {
		// Ginkgo matches the name of the suite and the full name of the spec.
		args = append(args, "--ginkgo.focus=^Kubernetes e2e suite "+regexp.QuoteMeta(spec)+"$")
	}
	return args
}
