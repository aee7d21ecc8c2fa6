package requestlog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
)

const (
	collector      = "system:serviceaccount:kube-system:generic-garbage-collector"
	collectorAgent = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/abc/" + collector
)

// asked returns the log of an answered request of the garbage collector.
func asked(id, verb, uri string, status int) string {
	return strings.NewReplacer("x1", id, `"list"`, `"`+verb+`"`, "/api/v1/pods", uri, "503", fmt.Sprint(status),
		`"username":"jane"`, `"username":"`+collector+`"`, `"sourceIPs"`, `"userAgent":"`+collectorAgent+`","sourceIPs"`,
	).Replace(received + "\n" + complete)
}

func logged(t *testing.T, server string, lines ...string) Logs {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Logs{Server: server, ID: "apiserver-" + server, Audit: path}
}

func TestRequestsTellWhatOthersWroteAndAskedInVain(t *testing.T) {
	records, err := Read([]Logs{logged(t, "b",
		asked("1", "delete", "/apis/apps/v1/namespaces/n/deployments/d?propagationPolicy=Background", 200),
		asked("2", "get", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/o", 404),
		asked("3", "get", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/o", 200),
		asked("4", "watch", "/api/v1/configmaps?watch=true", 200),
		asked("5", "watch", "/api/v1/configmaps?watch=true", 503),
		asked("6", "deletecollection", "/api/v1/namespaces/n/configmaps", 200),
		asked("7", "update", "/api/v1/namespaces/n/finalize", 200),
		asked("8", "get", "/apis/certificates.k8s.io/v1beta1", 404),
		asked("load-1", "delete", "/api/v1/namespaces/n/pods/x", 200),
		asked("9", "patch", "/api/v1/namespaces/n/configmaps/c", 409),
		strings.NewReplacer(collector, "admin", collectorAgent, users.Agent).Replace(asked("10", "create", "/api/v1/namespaces/n/pods", 503)),
		strings.NewReplacer(collector, "admin", collectorAgent,
			"e2e.test/v1.37.1").Replace(asked("21", "create", "/api/v1/namespaces/n/pods", 201)),
		strings.NewReplacer("jane", itself, `"list"`, `"create"`).Replace(received+"\n"+complete),
		asked("11", "update", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager", 200),
		asked("12", "create", "/apis/events.k8s.io/v1/namespaces/n/events", 201),
		asked("13", "create", "/api/v1/namespaces/n/events", 201),
		asked("14", "patch", "/api/v1/nodes/n1/status", 200),
		asked("15", "create", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 201),
		asked("16", "get", "/readyz", 500),
		asked("17", "get", "/livez/ping", 500),
		asked("18", "patch", "/api/v1/nodes/n1", 200),
		asked("19", "create", "/apis/coordination.k8s.io/v1alpha2/namespaces/n/leasecandidates", 201),
		asked("20", "delete", "not a path", 200),
		asked("22", "get", "/apis", 200),
		asked("23", "get", "/api?timeout=32s", 304),
		asked("24", "get", "/apis/apps/v1", 200),
		strings.NewReplacer(collector, "system:serviceaccount:default:somebody").Replace(asked("25", "get", "/apis", 200)),
		strings.NewReplacer(collector, "admin").Replace(asked("26", "get", "/apis", 200)),
		strings.NewReplacer(collector, "admin").Replace(asked("27", "get", "/apis/apps/v1", 200)),
	)}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	one := func(id, verb, path string, status int, about history.Request) history.Request {
		about.ID, about.Server, about.Verb, about.Path, about.Status = id, "b", verb, path, status
		about.Start, about.End, about.User, about.Agent = time.Second, 1250*time.Millisecond, collector, collectorAgent
		return about
	}
	bundles := history.GVR{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}
	core := func(resource string) history.GVR { return history.GVR{Version: "v1", Resource: resource} }
	own := one("10", "create", "/api/v1/namespaces/n/pods", 503, history.Request{GVR: core("pods"), Namespace: "n", Own: true})
	own.User, own.Agent = "admin", users.Agent
	sameUser := one("21", "create", "/api/v1/namespaces/n/pods", 201, history.Request{GVR: core("pods"), Namespace: "n"})
	sameUser.User, sameUser.Agent = "admin", "e2e.test/v1.37.1"
	compare(t, []history.Request{
		one("1", "delete", "/apis/apps/v1/namespaces/n/deployments/d?propagationPolicy=Background", 200,
			history.Request{GVR: history.GVR{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "n", Name: "d"}),
		one("2", "get", "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/o", 404, history.Request{GVR: bundles, Name: "o"}),
		one("5", "watch", "/api/v1/configmaps?watch=true", 503, history.Request{GVR: core("configmaps")}),
		one("6", "deletecollection", "/api/v1/namespaces/n/configmaps", 200, history.Request{GVR: core("configmaps"), Namespace: "n"}),
		one("7", "update", "/api/v1/namespaces/n/finalize", 200, history.Request{GVR: core("namespaces"), Subresource: "finalize", Name: "n"}),
		one("8", "get", "/apis/certificates.k8s.io/v1beta1", 404,
			history.Request{GVR: history.GVR{Group: "certificates.k8s.io", Version: "v1beta1"}}),
		one("9", "patch", "/api/v1/namespaces/n/configmaps/c", 409, history.Request{GVR: core("configmaps"), Namespace: "n", Name: "c"}),
		own, sameUser,
		one("18", "patch", "/api/v1/nodes/n1", 200, history.Request{GVR: core("nodes"), Name: "n1"}),
		one("19", "create", "/apis/coordination.k8s.io/v1alpha2/namespaces/n/leasecandidates", 201,
			history.Request{GVR: history.GVR{Group: "coordination.k8s.io", Version: "v1alpha2", Resource: "leasecandidates"}, Namespace: "n"}),
		one("22", "get", "/apis", 200, history.Request{}),
		one("23", "get", "/api?timeout=32s", 304, history.Request{}),
		one("24", "get", "/apis/apps/v1", 200, history.Request{GVR: history.GVR{Group: "apps", Version: "v1"}}),
	}, records.Requests(func(id string) bool { return strings.HasPrefix(id, "load-") }, "admin"))
}

// The server that forwarded a request and the server that handled it each have a record of it.
func TestRequestsThatArePassedOnAreToldByBothServers(t *testing.T) {
	front := asked("1", "delete", "/api/v1/namespaces/n/pods/x", 200)
	behind := strings.NewReplacer("01.000000Z", "01.100000Z", "01.250000Z", "01.200000Z", `["198.18.0.5"]`,
		`["198.18.0.5","198.18.0.6"]`).Replace(front)
	records, err := Read([]Logs{logged(t, "b", front), logged(t, "a", behind)}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	got := records.Requests(func(string) bool { return false }, collector)
	if slices.ContainsFunc(got, func(r history.Request) bool { return r.Own }) {
		t.Errorf("another program of that user counts as the run: %+v", got)
	}
	if len(got) != 2 || got[0].ID != got[1].ID || got[0].Server != "b" || got[0].Rerouted || got[1].Server != "a" || !got[1].Rerouted {
		t.Errorf("%+v", got)
	}
}
