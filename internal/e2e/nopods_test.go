package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy/sidecar"
)

// These are the names and flags of the server that serves everything but pods. It is an additional
// server of a run, in the run's own network namespace.
const (
	noPodsFront = 7443 // its sidecar
	noPodsOwn   = 7444 // its kube-apiserver
	noPodsAdmin = "127.0.0.1:7440"
	// peerName is in every serving certificate of a run.
	peerName = "kubernetes.default.svc"
	// anyServer is a server of the run. The additional servers present its serving certificate too.
	anyServer = "b"
)

// noPods is a kube-apiserver with pods switched off, behind a sidecar. Every request about a pod
// crosses the hop.
type noPods struct {
	t       *testing.T   // the programs end with this test
	config  *rest.Config // the administrator's, to the sidecar
	sidecar *exec.Cmd
	args    []string
	access  string // its access log
}

// startNoPods returns when the sidecar knows which servers serve pods.
func startNoPods(t *testing.T, version string) *noPods {
	t.Helper()
	files := insideFiles(t)
	// The peers reach the run's own namespace at their gateways. They can all use one of these
	// addresses.
	at := gatewayOf(t, anyServer)
	front := netip.AddrPortFrom(at, noPodsFront)
	place := local.Place{Name: anyServer, Advertised: front, Real: front, Own: netip.AddrPortFrom(at, noPodsOwn)}

	args, err := local.APIServerArguments(version, scenario.SubjectReference, place, files)
	must(t, err)
	args = replaced(args,
		"--etcd-servers=https://127.0.0.1:2379", // the run has no link for this server
		"--authorization-mode=RBAC",
		"--audit-log-path="+filepath.Join(files.Logs, "audit.jsonl"))
	args = append(args, "--runtime-config=/v1/pods=false")
	own := "https://127.0.0.1:7444"
	startProgram(t, insideBinary(t, version), args, filepath.Join(files.Logs, "kube-apiserver.log"))
	admin := rest.CopyConfig(insideConfig(t, anyServer))
	admin.Host, admin.ServerName = own, peerName
	apiserver, err := kubernetes.NewForConfig(admin)
	must(t, err)
	eventually(t, "the kube-apiserver without pods is up", 2*time.Minute, func() bool {
		_, err := apiserver.Discovery().RESTClient().Get().AbsPath("/readyz").Param("exclude", "informer-sync").DoRaw(t.Context())
		return err == nil
	})

	n := &noPods{t: t, access: filepath.Join(files.Logs, "access.jsonl"), config: rest.CopyConfig(admin)}
	n.config.Host = "https://127.0.0.1:7443"
	n.args = replaced(local.ProxyArguments(place, files),
		"--upstream="+readyWithoutPods(t, own), "--upstream-server-name="+peerName, "--kubeconfig=", "--admin-bind-address="+noPodsAdmin,
		"--access-log="+n.access, "--shutdown-timeout=5s")
	n.start(t)
	return n
}

// start starts the sidecar.
func (n *noPods) start(t *testing.T) {
	t.Helper()
	n.sidecar = startProgram(n.t, skewproof, n.args, n.access+".log")
	client, err := kubernetes.NewForConfig(n.config)
	must(t, err)
	eventually(t, "the sidecar is ready, and knows a peer that serves pods", time.Minute, func() bool {
		_, unready := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		_, unknown := client.Discovery().RESTClient().Get().AbsPath("/api/v1/pods").DoRaw(t.Context())
		return unready == nil && unknown == nil
	})
}

// stop sends SIGTERM to the sidecar and waits until it has ended.
func (n *noPods) stop(t *testing.T) {
	t.Helper()
	must(t, n.sidecar.Process.Signal(syscall.SIGTERM))
	if err := n.sidecar.Wait(); err != nil {
		t.Errorf("the sidecar ended with %v after SIGTERM, want 0", err)
	}
}

// asProcess is the sidecar as a process.
func (n *noPods) asProcess() sidecarProcess {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	return sidecarProcess{name: "without pods", metrics: client, url: "http://" + noPodsAdmin + "/metrics"}
}

// records returns the lines of the access log about a path.
func (n *noPods) records(t *testing.T, about string) (all []sidecar.AccessRecord) {
	t.Helper()
	file, err := os.Open(n.access)
	must(t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r sidecar.AccessRecord
		must(t, json.Unmarshal(lines.Bytes(), &r))
		if strings.Contains(r.Path, about) {
			all = append(all, r)
		}
	}
	return all
}

// readyWithoutPods returns the URL of a proxy to a kube-apiserver. The proxy leaves one check out
// of /readyz: a kube-apiserver without pods waits for ever for its own informer of pods, and only
// this check keeps it from being ready. If a request came with the front-proxy certificate, the
// proxy sends it with that certificate, and otherwise without one.
func readyWithoutPods(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	must(t, err)
	serving, err := tls.LoadX509KeyPair(insideKeys("serving-"+anyServer+".crt"), insideKeys("serving-"+anyServer+".key"))
	must(t, err)
	front, err := tls.LoadX509KeyPair(insideKeys("front-proxy-client.crt"), insideKeys("front-proxy-client.key"))
	must(t, err)
	dialled := func(certificates ...tls.Certificate) *http.Transport {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: insidePool(t, "ca"), ServerName: peerName, Certificates: certificates,
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	server := &http.Server{
		Handler: &httputil.ReverseProxy{Transport: asReceived{dialled(front), dialled()}, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), withCertificate{}, len(r.In.TLS.PeerCertificates) > 0))
			if r.In.URL.Path == "/readyz" {
				r.Out.URL.RawQuery = "exclude=informer-sync"
			}
		}, ErrorLog: log.New(io.Discard, "", 0)},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving},
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: insidePool(t, "front-proxy-ca"),
		},
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return "https://" + listener.Addr().String()
}

type withCertificate struct{}

// asReceived sends requests with a client certificate if the context says that they were received
// with one.
type asReceived struct{ certified, plain *http.Transport }

func (a asReceived) RoundTrip(r *http.Request) (*http.Response, error) {
	if certified, _ := r.Context().Value(withCertificate{}).(bool); certified {
		return a.certified.RoundTrip(r)
	}
	return a.plain.RoundTrip(r)
}

// startProgram starts a program of the test. The program is killed at the end of the test.
func startProgram(t *testing.T, program string, args []string, output string) *exec.Cmd {
	t.Helper()
	file, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer func() { _ = file.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	must(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
			_ = cmd.Wait()
		}
		if content, err := os.ReadFile(output); t.Failed() && err == nil {
			t.Logf("the last of %s:\n%s", filepath.Base(output), content[max(0, len(content)-4000):])
		}
	})
	return cmd
}

// replaced returns the arguments with some flags set to other values. Missing flags are added.
func replaced(args []string, flags ...string) []string {
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, name+"=") })
		args = append(args, f)
	}
	return args
}

// gatewayOf is the address of the run's own namespace on its link to a server.
func gatewayOf(t *testing.T, server string) netip.Addr {
	t.Helper()
	link, err := net.InterfaceByName("to-" + server)
	must(t, err)
	addresses, err := link.Addrs()
	must(t, err)
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			return prefix.Addr()
		}
	}
	t.Fatalf("the link to %s has the addresses %v, none of them IPv4", server, addresses)
	return netip.Addr{}
}

func insidePool(t *testing.T, authority string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(insideKeys(authority + ".crt"))
	must(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		t.Fatalf("%s.crt has no certificate", authority)
	}
	return pool
}
