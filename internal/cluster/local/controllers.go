package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/sandbox"
)

const (
	// ProgramControllers is the program that runs Kubernetes' controllers.
	ProgramControllers = "kube-controller-manager"
	controllersUser    = "system:kube-controller-manager" // RBAC's default roles are bound to this user
	controllersName    = "controllers"
	controllersTimeout = 90 * time.Second
	// controllersRestarts is how often the program may end by itself before the run is over. It
	// ends whenever a connection breaks while it starts its controllers. With leader election it
	// also ends whenever its server is out of reach for longer than a lease may be renewed.
	// Each of them ends at once while a server is out of reach, which it may be for half a minute.
	controllersRestarts = 30
	candidatesRestarts  = 50
	// restartDelay is the time until the program is started again. A kubelet waits longer.
	restartDelay = time.Second
)

// controllersHost is the /30 between the run and the host of the controllers, just before those of
// the servers. The /30s of candidates are in another block, in the order of the servers whose
// clients they are.
var (
	controllersHost = netip.PrefixFrom(hostBlock, 30)
	candidatesBlock = netip.MustParseAddr("198.18.2.0")
)

// controllersPort is where the controllers answer, only for probes: their usual port.
const controllersPort = 10257

// controllers is kube-controller-manager on its own host, as in a cluster whose controllers are not
// on a server's node. Its connections go through the clients' links.
type controllers struct {
	name   string // of the host, of the logs, and of the files in the directory of keys
	subnet netip.Prefix
	elect  bool
	pause  time.Duration // until the program is started again

	mu      sync.Mutex
	host    *sandbox.Host // nil until it is needed
	program *dependency   // nil if it does not run
	again   int           // how often it was restarted since the run asked for it
	started int           // how often the run asked for it
	// measure writes the measurements of the running program into the logs. It is nil if the
	// program never ran.
	measure func(context.Context) error
	status  func(format string, args ...any)
	begin   func() (*process, error)
}

// address is where the program answers.
func (r *controllers) address() netip.AddrPort {
	return netip.AddrPortFrom(r.subnet.Addr().Next().Next(), controllersPort)
}

// candidates are the controllers with leader election, by the server whose clients they are.
type candidates struct {
	mu  sync.Mutex
	all map[string]*controllers
}

// of returns the candidate that is a client of the n-th server.
func (c *candidates) of(server string, n int) *controllers {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*controllers{}
	}
	if c.all[server] == nil {
		c.all[server] = &controllers{
			name: CandidateHost(server), subnet: netip.PrefixFrom(offset(candidatesBlock, 4*n), 30), elect: true, pause: restartDelay,
		}
	}
	return c.all[server]
}

func (c *candidates) list() (all []*controllers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(c.all)) {
		all = append(all, c.all[server])
	}
	return all
}

// CandidateHost is the name of the host of the controllers with leader election that are clients of
// a server. Their identity in the Lease begins with it.
func CandidateHost(server string) string { return history.CandidatePrefix + server }

// StartControllers implements [cluster.Controllers].
func (c *Cluster) StartControllers(ctx context.Context, version, through string) error {
	if err := c.StopControllers(ctx); err != nil {
		return err
	}
	return c.begin(ctx, &c.controllers, version, through)
}

// StartCandidate implements [cluster.Controllers].
func (c *Cluster) StartCandidate(ctx context.Context, version, through string) error {
	i := slices.IndexFunc(c.config.Servers, func(s history.Server) bool { return s.Name == through })
	if i < 0 {
		return fmt.Errorf("start %s %s: no server %q", ProgramControllers, version, through)
	}
	return c.begin(ctx, c.candidates.of(through, i), version, through)
}

func (c *Cluster) begin(ctx context.Context, r *controllers, version, through string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.stop(ctx)
	if err == nil {
		err = c.startControllers(ctx, r, version, through)
	}
	if err != nil {
		return fmt.Errorf("start %s %s: %w", ProgramControllers, version, err)
	}
	return nil
}

func (c *Cluster) startControllers(ctx context.Context, r *controllers, version, through string) error {
	files := c.config.Files
	binary, ok := c.config.Controllers[version]
	if !ok {
		return errors.New("no binary of that version was prepared")
	}
	if err := c.prepareControllers(r); err != nil {
		return err
	}
	to, err := c.wayThrough(through, balancerAddress)
	if err != nil {
		return err
	}
	if err := writeKubeconfig(files.key(r.name+".kubeconfig"), "controllers", files, to); err != nil {
		return err
	}
	transport, err := c.asAdmin()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	r.started++
	file := files.metrics(r.name, r.started)
	r.measure, r.status = func(ctx context.Context) error {
		return saveMetrics(ctx, client, "https://"+r.address().String()+"/metrics", file)
	}, c.config.Status
	own := migratorGate(version)
	if c.config.AsKubeadm {
		own = []string{"--cluster-signing-cert-file=" + files.key("ca.crt"), "--cluster-signing-key-file=" + files.key("ca.key")}
	}
	args := append(r.arguments(files), own...)
	r.again = 0
	r.begin = func() (*process, error) {
		return startProcess(ProgramControllers, binary, args, files.log(r.name), r.host.Start)
	}
	program, err := c.startDependency(ctx, start{
		name: ProgramControllers, binary: binary, args: args, log: r.name, on: r.host.Start,
		ready: "https://" + r.address().String() + "/healthz", client: client, limit: controllersTimeout,
		ended: func(d *dependency) { c.restartControllers(r, d) },
	})
	r.program = program
	return err
}

// restartControllers starts the program again after it ended by itself, as a kubelet does with a
// static pod.
func (c *Cluster) restartControllers(r *controllers, ended *dependency) {
	limit := controllersRestarts
	if r.elect {
		limit = candidatesRestarts
	}
	time.Sleep(r.pause)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program != ended {
		return
	}
	if r.again++; r.again > limit {
		c.failed(ended)
		return
	}
	how, _ := ended.Exit()
	c.config.Status("%s ended by itself (%s): start it again, as a kubelet does", r.name, how)
	p, err := r.begin()
	if err != nil {
		c.config.Failed(ended.name, fmt.Errorf("start %s again: %w", ended.name, err))
		return
	}
	r.program = &dependency{process: p}
	go r.program.watch(func(d *dependency) { c.restartControllers(r, d) })
}

// prepareControllers makes the host and the certificates, once.
func (c *Cluster) prepareControllers(r *controllers) error {
	if r.host != nil {
		return nil
	}
	host, err := sandbox.NewHost(r.name, r.subnet)
	if err != nil {
		return err
	}
	r.host = host
	c.candidates.mu.Lock()
	defer c.candidates.mu.Unlock()
	if _, err := os.Stat(c.config.Files.key("controllers.crt")); errors.Is(err, os.ErrNotExist) { // all are the same user
		if _, err := c.authorities.servers.Issue("controllers", pki.Request{CommonName: controllersUser, Client: true}); err != nil {
			return err
		}
	}
	_, err = c.authorities.servers.Issue(r.name+"-serving",
		pki.Request{CommonName: r.name, Server: true, Addresses: []netip.Addr{r.address().Addr()}})
	return err
}

// StopControllers implements [cluster.Controllers].
func (c *Cluster) StopControllers(ctx context.Context) error {
	for _, r := range append(c.candidates.list(), &c.controllers) {
		r.mu.Lock()
		err := r.stop(ctx)
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *controllers) stop(ctx context.Context) error {
	program := r.program
	r.program = nil
	if program == nil {
		return nil
	}
	r.keepMetrics(ctx)
	return program.stop(ctx)
}

// metricsTimeout is how long the end of the program may wait for its metrics.
const metricsTimeout = 5 * time.Second

// keepMetrics saves the metrics of the program before it ends. If this fails, the run continues,
// because no verdict depends on the metrics.
func (r *controllers) keepMetrics(ctx context.Context) {
	if r.measure == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	if err := r.measure(ctx); err != nil {
		r.status("the metrics of %s are not in the logs: %v", ProgramControllers, err)
	}
}

// saveMetrics writes the metrics at a URL to a file.
func saveMetrics(ctx context.Context, client *http.Client, url, file string) error {
	var metrics bytes.Buffer
	if err := lifecycle.Get(ctx, client, url, &metrics); err != nil {
		return err
	}
	return os.WriteFile(file, metrics.Bytes(), 0o600)
}

func (r *controllers) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program != nil {
		r.keepMetrics(context.Background())
		r.program.kill()
		r.program = nil
	}
	if r.host != nil {
		r.host.Close()
		r.host = nil
	}
}

// migratorGate returns the flags that switch on the controller of storage version migrations where
// it is off by default (k8s.io/kubernetes, pkg/features: beta and off in 1.35 and 1.36, on from
// 1.37). The controller does nothing while there is no StorageVersionMigration.
func migratorGate(version string) []string {
	switch semver.MajorMinor(version) {
	case "v1.35", "v1.36":
		return []string{"--feature-gates=StorageVersionMigrator=true"}
	}
	return nil
}

// ControllersArguments is the command line of kube-controller-manager, without the program's name,
// with leader election or without.
func ControllersArguments(f Files, elect bool) []string {
	r := controllers{name: controllersName, subnet: controllersHost, elect: elect}
	return r.arguments(f)
}

// arguments returns the command line. Each controller is a separate user, as with kubeadm, so that
// audit logs show which controller sent a request.
func (r *controllers) arguments(f Files) []string {
	kubeconfig := f.key(r.name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + r.address().Addr().String(),
		"--secure-port=" + strconv.Itoa(controllersPort),
		"--tls-cert-file=" + f.key(r.name+"-serving.crt"),
		"--tls-private-key-file=" + f.key(r.name+"-serving.key"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + f.key("service-account.key"),
		"--root-ca-file=" + f.key("ca.crt"),
		"--client-ca-file=" + f.key("ca.crt"), // so that the administrator may read its metrics
		// Where there is only one, it would end if it lost a lease while its server is cut off.
		"--leader-elect=" + strconv.FormatBool(r.elect),
	}
}
