package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
)

// extensionAddress is where the extension apiserver listens: in the run's own namespace, where etcd lives too. Every host reaches it by its gateway.
var extensionAddress = netip.MustParseAddrPort("198.19.254.1:8443")

const (
	// ProgramExtension is the extension apiserver; this very executable.
	ProgramExtension = "skewproof extension"
	// extensionPatience is how long it may take to start.
	extensionPatience = 20 * time.Second
)

// extensionServer is the program behind aggregated APIs: started when there is the first one, ended when there is none left.
type extensionServer struct {
	mu      sync.Mutex
	owned   bool // its address and keys are there
	unit    *unit
	release func() // it may end; nil before it runs
}

// Extend lets an extension apiserver serve these APIs and no others, and says where. It returns when it does; with no API it has ended.
func (c *Cluster) Extend(ctx context.Context, apis []scenario.Definition) (address netip.AddrPort, ca []byte, err error) {
	e := &c.extension
	e.mu.Lock()
	defer e.mu.Unlock()
	fail := func(err error) (netip.AddrPort, []byte, error) {
		return netip.AddrPort{}, nil, fmt.Errorf("serve aggregated APIs: %w", err)
	}
	if err := c.prepareExtension(); err != nil {
		return fail(err)
	}
	served := make([]extension.API, len(apis))
	for i, d := range apis {
		served[i] = extension.API{Group: d.Group, Resource: d.Resource, Versions: d.Versions}
	}
	if err := extension.WriteAPIs(c.config.Files.key("extension-apis.json"), served); err != nil {
		return fail(err)
	}
	switch {
	case len(apis) == 0 && e.unit != nil:
		e.letEnd()
		_, err := stop(ctx, e.unit, stopTimeout)
		e.unit = nil
		if err != nil {
			return fail(err)
		}
	case len(apis) > 0 && (e.unit == nil || e.unit.Ended()):
		if err := c.startExtension(ctx); err != nil {
			return fail(err)
		}
	}
	ca, err = os.ReadFile(c.config.Files.key("ca.crt"))
	if err != nil {
		return fail(err)
	}
	return extensionAddress, ca, nil
}

// prepareExtension makes its address and certificate, once.
func (c *Cluster) prepareExtension() error {
	if c.extension.owned {
		return nil
	}
	if err := sandbox.Own(extensionAddress.Addr()); err != nil {
		return err
	}
	_, err := c.authorities.servers.Issue("extension", pki.Request{
		CommonName: "extension", Server: true, DNSNames: []string{extension.ServiceName + "." + extension.ServiceNamespace + ".svc"},
		Addresses: []netip.Addr{extensionAddress.Addr()},
	})
	c.extension.owned = err == nil
	return err
}

func (c *Cluster) startExtension(ctx context.Context) error {
	binary, err := c.config.binary(ProgramProxy, "") // this executable
	if err != nil {
		return err
	}
	p, err := startProcess(ProgramExtension, binary, ExtensionArguments(c.config.Files), c.config.Files.log("extension"), (*exec.Cmd).Start)
	if err != nil {
		return err
	}
	c.extension.unit = life.NewUnit[*process]()
	c.extension.unit.Add(p)
	ca, err := os.ReadFile(c.config.Files.key("ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	err = c.extension.unit.Await(ctx, p, extensionPatience, func(ctx context.Context) error {
		return life.Get(ctx, client, "https://"+extensionAddress.String()+"/readyz", io.Discard)
	})
	if err != nil {
		return err
	}
	c.extension.release = c.need(ProgramExtension, c.extension.unit)
	return nil
}

// ExtensionArguments returns the command line of the extension apiserver, without the program's name.
func ExtensionArguments(f Files) []string {
	return []string{
		"extension",
		"--address=" + extensionAddress.String(),
		"--tls-cert-file=" + f.key("extension.crt"),
		"--tls-private-key-file=" + f.key("extension.key"),
		"--requestheader-client-ca-file=" + f.key("front-proxy-ca.crt"),
		"--requestheader-allowed-name=front-proxy-client",
		"--apis=" + f.key("extension-apis.json"),
	}
}

// close ends it at once.
func (e *extensionServer) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unit != nil {
		e.letEnd()
		_ = kill(e.unit)
		e.unit = nil
	}
}

// letEnd notes that its end is asked for.
func (e *extensionServer) letEnd() {
	if e.release != nil {
		e.release()
		e.release = nil
	}
}
