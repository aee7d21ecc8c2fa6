package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/sandbox"
)

const (
	// ProgramControllers is the program that runs Kubernetes' controllers.
	ProgramControllers = "kube-controller-manager"
	controllersUser    = "system:kube-controller-manager" // RBAC's default roles are bound to this user
	controllersTimeout = 90 * time.Second
	// controllersRestarts is how often the program may end by itself before the run is over. It
	// ends whenever a connection breaks while it starts its controllers.
	controllersRestarts = 5
)

// controllersHost is the /30 between the run and the host of the controllers. It is the one before
// those of the servers. controllersAddress is where the controllers answer, only for probes.
var (
	controllersHost    = netip.PrefixFrom(hostBlock, 30)
	controllersAddress = netip.AddrPortFrom(hostBlock.Next().Next(), 10257) // their usual port
)

// controllers is kube-controller-manager on its own host, as in a cluster whose controllers are not
// on a server's node. Its connections go through the clients' links.
type controllers struct {
	mu      sync.Mutex
	host    *sandbox.Host // nil until it is needed
	program *dependency   // nil if it does not run
	again   int           // how often it was restarted since the run asked for it
	started int           // how often the run asked for it
	// measure writes what the running program has measured into the logs; nil if it never ran.
	measure func(context.Context) error
	status  func(format string, args ...any)
	begin   func() (*process, error)
}

// StartControllers implements [cluster.Controllers].
func (c *Cluster) StartControllers(ctx context.Context, version, through string) error {
	r := &c.controllers
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.stop(ctx); err != nil {
		return err
	}
	if err := c.startControllers(ctx, version, through); err != nil {
		return fmt.Errorf("start %s %s: %w", ProgramControllers, version, err)
	}
	return nil
}

func (c *Cluster) startControllers(ctx context.Context, version, through string) error {
	r, files := &c.controllers, c.config.Files
	binary, ok := c.config.Controllers[version]
	if !ok {
		return errors.New("no binary of that version was prepared")
	}
	if err := c.prepareControllers(); err != nil {
		return err
	}
	to, err := c.wayThrough(through, balancerAddress)
	if err != nil {
		return err
	}
	if err := writeKubeconfig(files.key("controllers.kubeconfig"), "controllers", files, to); err != nil {
		return err
	}
	admin, err := tls.LoadX509KeyPair(files.key("admin.crt"), files.key("admin.key"))
	if err != nil {
		return fmt.Errorf("prepare to read its metrics: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: c.pool("ca"), Certificates: []tls.Certificate{admin}}, DisableKeepAlives: true,
	}}
	r.started++
	file := files.metrics(r.started)
	r.measure, r.status = func(ctx context.Context) error {
		return saveMetrics(ctx, client, "https://"+controllersAddress.String()+"/metrics", file)
	}, c.config.Status
	r.again = 0
	r.begin = func() (*process, error) {
		return startProcess(ProgramControllers, binary, ControllersArguments(files), files.log("controllers"), r.host.Start)
	}
	program, err := c.startDependency(ctx, start{
		name: ProgramControllers, binary: binary, args: ControllersArguments(files), log: "controllers", on: r.host.Start,
		ready: "https://" + controllersAddress.String() + "/healthz", client: client, limit: controllersTimeout, ended: c.restartControllers,
	})
	r.program = program
	return err
}

// restartControllers starts the program again after it ended by itself, as a kubelet does with a
// static pod.
func (c *Cluster) restartControllers(ended *dependency) {
	r := &c.controllers
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.program != ended {
		return
	}
	if r.again++; r.again > controllersRestarts {
		c.failed(ended)
		return
	}
	how, _ := ended.Exit()
	c.config.Status("%s ended by itself (%s): start it again, as a kubelet does", ended.name, how)
	p, err := r.begin()
	if err != nil {
		c.config.Failed(ended.name, fmt.Errorf("start %s again: %w", ended.name, err))
		return
	}
	r.program = &dependency{process: p}
	go r.program.watch(c.restartControllers)
}

// prepareControllers makes the host and the certificates, once.
func (c *Cluster) prepareControllers() error {
	r := &c.controllers
	if r.host != nil {
		return nil
	}
	host, err := sandbox.NewHost("controllers", controllersHost)
	if err != nil {
		return err
	}
	r.host = host
	if _, err := c.authorities.servers.Issue("controllers", pki.Request{CommonName: controllersUser, Client: true}); err != nil {
		return err
	}
	_, err = c.authorities.servers.Issue("controllers-serving", pki.Request{CommonName: "controllers", Server: true, Addresses: []netip.Addr{controllersAddress.Addr()}})
	return err
}

// StopControllers implements [cluster.Controllers].
func (c *Cluster) StopControllers(ctx context.Context) error {
	c.controllers.mu.Lock()
	defer c.controllers.mu.Unlock()
	return c.controllers.stop(ctx)
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

// keepMetrics saves the metrics of the program, which end with it. A run goes on without them,
// because no verdict depends on them.
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

// ControllersArguments is the command line of kube-controller-manager, without the program's name.
// Each controller is a user of its own, as with kubeadm, so that audit logs show which controller
// did what.
func ControllersArguments(f Files) []string {
	kubeconfig := f.key("controllers.kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + controllersAddress.Addr().String(),
		"--secure-port=" + strconv.Itoa(int(controllersAddress.Port())),
		"--tls-cert-file=" + f.key("controllers-serving.crt"),
		"--tls-private-key-file=" + f.key("controllers-serving.key"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + f.key("service-account.key"),
		"--root-ca-file=" + f.key("ca.crt"),
		"--client-ca-file=" + f.key("ca.crt"), // so that the administrator may read its metrics
		// There is only one. If it lost a lease while its server is cut off, it would end.
		"--leader-elect=false",
	}
}
