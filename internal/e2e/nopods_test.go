package e2e

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the names and flags of the server that serves everything but pods. It is an additional
// server of a run, in the run's own network namespace.
const (
	noPodsPort = 7443
	// peerName is in every serving certificate of a run.
	peerName = "kubernetes.default.svc"
	// anyServer is a server of the run. The additional servers present its serving certificate too.
	anyServer = "b"
)

// noPods is a kube-apiserver with the reference proxy, and with pods switched off. Every request
// about a pod crosses the hop.
type noPods struct {
	config *rest.Config // the administrator's
	audit  string       // its audit log
}

// startNoPods returns when the server knows which servers serve pods.
func startNoPods(t *testing.T, version string) *noPods {
	t.Helper()
	files := insideFiles(t)
	// The peers reach the run's own namespace at their gateways. They can all use one of these
	// addresses.
	at := netip.AddrPortFrom(gatewayOf(t, anyServer), noPodsPort)
	place := local.Place{Name: anyServer, Advertised: at, Real: at}
	n := &noPods{audit: filepath.Join(files.Logs, "audit.jsonl"), config: rest.CopyConfig(insideConfig(t, anyServer))}
	n.config.Host, n.config.ServerName = fmt.Sprintf("https://127.0.0.1:%d", noPodsPort), peerName

	args, err := local.APIServerArguments(version, scenario.SubjectReference, place, files)
	must(t, err)
	args = replaced(args,
		"--etcd-servers=https://127.0.0.1:2379", // the run has no link for this server
		"--authorization-mode=RBAC",
		"--audit-log-path="+n.audit)
	args = append(args, "--runtime-config=/v1/pods=false")
	startProgram(t, insideBinary(t, version), args, filepath.Join(files.Logs, "kube-apiserver.log"))
	client, err := kubernetes.NewForConfig(n.config)
	must(t, err)
	// It is never ready: a kube-apiserver without pods waits for ever for its own informer of pods.
	eventually(t, "the kube-apiserver without pods knows a peer that serves pods", 2*time.Minute, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/api/v1/pods").DoRaw(t.Context())
		return err == nil
	})
	return n
}

// records returns the audit events of answered requests about a path.
func (n *noPods) records(t *testing.T, about string) (all []auditv1.Event) {
	t.Helper()
	file, err := os.Open(n.audit)
	must(t, err)
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		must(t, json.Unmarshal(lines.Bytes(), &e))
		if e.Stage == auditv1.StageResponseComplete && strings.Contains(e.RequestURI, about) {
			all = append(all, e)
		}
	}
	return all
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
