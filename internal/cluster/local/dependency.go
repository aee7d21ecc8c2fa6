package local

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// dependency is a program that is not a server, and without which the run is over: etcd, the
// extension apiserver, or the controllers.
type dependency struct {
	*process
	expected atomic.Bool // the run asked for its end
}

// start says how a dependency starts.
type start struct {
	name   string // for people, and for Config.Failed
	binary string
	args   []string
	log    string // the name of its log
	// on starts it on a host. (*exec.Cmd).Start starts it in the run's own namespace.
	on func(*exec.Cmd) error
	// ready is the URL that answers client with 200 when the program is ready.
	ready  string
	client *http.Client
	limit  time.Duration
	// ended is called if the dependency ends by itself after it was ready. If ended is nil, such an
	// end ends the run.
	ended func(*dependency)
}

// startDependency starts a program and returns when it is ready. Even with an error, it may return
// a program that runs.
func (c *Cluster) startDependency(ctx context.Context, s start) (*dependency, error) {
	p, err := startProcess(s.name, s.binary, s.args, c.config.Files.log(s.log), s.on)
	if err != nil {
		return nil, err
	}
	d := &dependency{process: p}
	err = lifecycle.AwaitReady(ctx, p, s.limit, func(ctx context.Context) error { return lifecycle.Get(ctx, s.client, s.ready, io.Discard) })
	if err == nil {
		ended := s.ended
		if ended == nil {
			ended = c.failed
		}
		go d.watch(ended)
	}
	return d, err
}

// watch calls a function if the program ends by itself.
func (d *dependency) watch(ended func(*dependency)) {
	<-d.done
	if !d.expected.Load() {
		ended(d)
	}
}

// failed tells the run that a dependency ended by itself. Failures of servers after this are not
// the servers' fault.
func (c *Cluster) failed(d *dependency) {
	c.config.Failed(d.name, fmt.Errorf("%s ended although the run did not stop it: %s", d.name, lifecycle.Ending(d.process)))
}

func (d *dependency) stop(ctx context.Context) error {
	d.expected.Store(true)
	if err := d.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return lifecycle.AwaitEnd(ctx, d.process, stopTimeout)
}

func (d *dependency) kill() {
	d.expected.Store(true)
	if d.signal(syscall.SIGKILL) == nil {
		<-d.done
	}
}

const extensionTimeout = 20 * time.Second

// extensionServer is the program that serves aggregated APIs. It runs as long as there is an
// aggregated API.
type extensionServer struct {
	mu       sync.Mutex
	prepared bool // its address and certificate exist
	program  *dependency
}

// Extend makes an extension apiserver serve exactly these APIs, and returns its address and
// authority. It returns when the APIs are served. If there are no APIs, the program has ended when
// Extend returns.
func (c *Cluster) Extend(ctx context.Context, apis []scenario.Definition) (address netip.AddrPort, ca []byte, err error) {
	c.extension.mu.Lock()
	defer c.extension.mu.Unlock()
	if err = c.extend(ctx, apis); err == nil {
		ca, err = os.ReadFile(c.config.Files.key("ca.crt"))
	}
	if err != nil {
		return netip.AddrPort{}, nil, fmt.Errorf("serve aggregated APIs: %w", err)
	}
	return extensionAddress, ca, nil
}

func (c *Cluster) extend(ctx context.Context, apis []scenario.Definition) error {
	e := &c.extension
	if err := c.prepareExtension(); err != nil {
		return err
	}
	served := make([]extension.API, len(apis))
	for i, d := range apis {
		served[i] = extension.API{Group: d.Group, Resource: d.Resource, Versions: d.Versions}
	}
	if err := extension.WriteAPIs(c.config.Files.key("extension-apis.json"), served); err != nil {
		return err
	}
	if e.program != nil {
		select {
		case <-e.program.done:
			e.program = nil
		default:
		}
	}
	switch {
	case len(apis) == 0 && e.program != nil:
		program := e.program
		e.program = nil
		return program.stop(ctx)
	case len(apis) > 0 && e.program == nil:
		return c.startExtension(ctx)
	}
	return nil
}

func (c *Cluster) prepareExtension() error {
	if c.extension.prepared {
		return nil
	}
	if err := sandbox.Own(extensionAddress.Addr()); err != nil {
		return err
	}
	_, err := c.authorities.servers.Issue("extension", pki.Request{
		CommonName: "extension", Server: true, DNSNames: []string{extension.ServiceName + "." + extension.ServiceNamespace + ".svc"},
		Addresses: []netip.Addr{extensionAddress.Addr()},
	})
	c.extension.prepared = err == nil
	return err
}

func (c *Cluster) startExtension(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.pool("ca")}}}
	defer client.CloseIdleConnections()
	program, err := c.startDependency(ctx, start{
		name: ProgramExtension, binary: c.config.Self, args: ExtensionArguments(c.config.Files), log: "extension", on: (*exec.Cmd).Start,
		ready: "https://" + extensionAddress.String() + "/readyz", client: client, limit: extensionTimeout,
	})
	c.extension.program = program
	return err
}

func (e *extensionServer) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.program != nil {
		e.program.kill()
		e.program = nil
	}
}
