package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// The test restarts a sidecar with a second header in which front proxies may name users. Clients
// may send this header. The kube-apiserver behind the sidecar closes connections at random.
func TestServerIsRestartedWithOtherFlags(t *testing.T) {
	if isInside() {
		restartWithOtherFlags(t)
		return
	}
	needsTools(t, "nsenter")
	held := begin(t, "The cluster stays up", "--keep", "--no-load", "--at", "0", "--subject", "reference", "--servers", "2")
	held.again(t, 4*time.Minute)
	held.end(t, syscall.SIGINT)
}

// The server under test is an additional server of the run, with the certificates of another
// server.
const (
	otherFront = 7543 // its sidecar
	otherOwn   = 7544 // its kube-apiserver
	otherAdmin = "127.0.0.1:7540"
)

func restartWithOtherFlags(t *testing.T) {
	files := insideFiles(t)
	at := gatewayOf(t, anyServer)
	place := local.Place{
		Name: anyServer, Advertised: netip.AddrPortFrom(at, otherFront), Real: netip.AddrPortFrom(at, otherFront), Own: netip.AddrPortFrom(at, otherOwn),
	}
	args, err := local.APIServerArguments(newPair.to, scenario.SubjectReference, place, files)
	must(t, err)
	args = append(replaced(args, "--etcd-servers=https://127.0.0.1:2379", "--authorization-mode=RBAC", "--audit-log-path="+filepath.Join(files.Logs, "audit.jsonl")),
		"--goaway-chance="+goawayChance)
	binary := insideBinary(t, newPair.to)
	apiserver := startProgram(t, binary, args, filepath.Join(files.Logs, "kube-apiserver.log"))
	sidecarArgs := replaced(local.ProxyArguments(place, files),
		"--upstream=https://127.0.0.1:7544", "--upstream-server-name="+peerName, "--kubeconfig=", "--admin-bind-address="+otherAdmin,
		"--access-log="+filepath.Join(files.Logs, "access.jsonl"))
	startProgram(t, skewproof, sidecarArgs, filepath.Join(files.Logs, "sidecar.log"))

	config := rest.CopyConfig(insideConfig(t, anyServer))
	config.Host, config.ServerName = "https://127.0.0.1:7543", peerName
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	ready := func() bool {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}
	eventually(t, "the sidecar and its kube-apiserver are ready", 2*time.Minute, ready)
	scrapes(t, admin, config)

	anonymous := rest.AnonymousClientConfig(config)
	client, err := rest.HTTPClientFor(anonymous)
	must(t, err)
	// as sends a request for the caller's identity, with an identity header, and returns the
	// status.
	as := func(header string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
			strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
		must(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(header, "root")
		answer, err := client.Do(request)
		if err != nil {
			return 0
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if got := as("X-Forwarded-User"); got != http.StatusForbidden {
		t.Fatalf("before the restart: %d, want 403", got)
	}
	must(t, apiserver.Process.Kill())
	_ = apiserver.Wait()
	args = replaced(args, "--requestheader-username-headers=X-Remote-User,X-Forwarded-User")
	startProgram(t, binary, args, filepath.Join(files.Logs, "kube-apiserver-again.log"))
	var codes [600]atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for ctx.Err() == nil {
			codes[as("X-Forwarded-User")].Add(1)
		}
	}()
	eventually(t, "the kube-apiserver is ready again, and answers the client", 2*time.Minute, func() bool {
		return ready() && codes[http.StatusForbidden].Load() > 100
	})
	cancel()
	<-asked
	said := ""
	for code := range codes {
		if n := codes[code].Load(); n > 0 {
			said += fmt.Sprintf(" %d: %d times;", code, n)
		}
	}
	t.Logf("a client that calls itself root was answered%s", said)
	if n := codes[http.StatusCreated].Load(); n > 0 {
		t.Errorf("a client that calls itself root was root %d times", n)
	}

	again := exec.CommandContext(t.Context(), skewproof, replaced(sidecarArgs, "--secure-port=7545", "--admin-bind-address=", "--access-log=")...)
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), `"X-Forwarded-User"`) {
		t.Errorf("a sidecar without the name ends with %v, want an error that names it:\n%s", err, out)
	}
}

// scrapes gets the sidecar's metrics like Prometheus, with the rights of the documented example.
func scrapes(t *testing.T, admin kubernetes.Interface, config *rest.Config) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workload.Namespace}}
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
	as := rest.AnonymousClientConfig(config)
	as.BearerToken = hostileAccounts(t, admin, "skewproof-prometheus", 1)[0]
	prometheus, err := kubernetes.NewForConfig(as)
	must(t, err)
	scrape := func() (string, error) {
		text, err := prometheus.Discovery().RESTClient().Get().AbsPath("/metrics/skewproof-proxy").DoRaw(t.Context())
		return string(text), err
	}
	if text, err := scrape(); err == nil {
		t.Errorf("metrics without the right: %.200s", text)
	}
	file, err := os.ReadFile("../../kindconfigs/kubeadm/metrics-rbac.yaml")
	must(t, err)
	first, second, _ := strings.Cut(string(file), "\n---\n")
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	must(t, yaml.UnmarshalStrict([]byte(first), &role))
	must(t, yaml.UnmarshalStrict([]byte(second), &binding))
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: workload.Namespace, Name: "skewproof-prometheus-0"}}
	_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &binding, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "a client with the right gets the metrics", time.Minute, func() bool {
		text, err := scrape()
		return err == nil && strings.Contains(text, "skewproof_proxy_peers{")
	})
}
