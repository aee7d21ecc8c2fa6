package kind

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/scenario"

	"github.com/skewproof/skewproof/internal/history"
)

func TestNodesAreCalledAsKindCallsThem(t *testing.T) {
	places := Places("skewproof-1", []history.Server{{Name: "a"}, {Name: "b"}})
	if places[0].Node != "skewproof-1-control-plane" || places[1].Node != "skewproof-1-control-plane2" {
		t.Errorf("%+v", places)
	}
	if places[0].ID == places[1].ID || !strings.HasPrefix(places[0].ID, "apiserver-") {
		t.Errorf("identities %s and %s", places[0].ID, places[1].ID)
	}
}

// Connections to the secure ports of other nodes and to the own etcd go to the fabric; those to the
// own secure port do not.
func TestRulesLeadToTheFabric(t *testing.T) {
	at := netip.MustParseAddrPort
	got := redirects{
		own:   netip.MustParseAddr("172.18.0.2"),
		peers: map[netip.AddrPort]netip.AddrPort{at("172.18.0.4:6443"): at("172.18.0.1:40001"), at("172.18.0.3:6443"): at("172.18.0.1:40000")},
		etcd:  at("172.18.0.1:40002"),
	}.rules()
	want := []string{
		"-N SKEWPROOF",
		"-A OUTPUT -p tcp -j SKEWPROOF",
		"-A SKEWPROOF -p tcp -d 172.18.0.3 --dport 6443 -j DNAT --to-destination 172.18.0.1:40000",
		"-A SKEWPROOF -p tcp -d 172.18.0.4 --dport 6443 -j DNAT --to-destination 172.18.0.1:40001",
		"-A SKEWPROOF -p tcp -d 127.0.0.1 --dport 2379 -j DNAT --to-destination 172.18.0.1:40002",
		"-A POSTROUTING -p tcp -s 127.0.0.0/8 -d 172.18.0.1 --dport 40002 -j SNAT --to-source 172.18.0.2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBypasses(t *testing.T) {
	listed := "0 0 172.18.0.2:6443 172.18.0.3:40022\n0 0 [::ffff:172.18.0.2]:6443 [::ffff:172.18.0.13]:51234\n0 0 [::ffff:172.18.0.2]:6443 [::ffff:172.18.0.1]:40010\n"
	for address, want := range map[string]bool{"172.18.0.3": true, "172.18.0.13": true, "172.18.0.1": true, "172.18.0.2": false, "172.18.0.30": false, "72.18.0.3": false} {
		if got := connectedFrom(listed, netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver, namespace: kube-system, annotations: {other: kept}}
spec:
  hostNetwork: true
  containers:
  - name: kube-apiserver
    command: [kube-apiserver, --secure-port=6443]
    image: registry.k8s.io/kube-apiserver:v1.36.3
    livenessProbe: {httpGet: {port: 6443, path: /livez, scheme: HTTPS}}
`

// A kubelet starts a new pod only when its manifest has changed. So a restart of the same version
// must change the manifest too.
func TestEachIncarnationHasAManifestOfItsOwn(t *testing.T) {
	second, err := edit([]byte(manifest), apiserverImage(scenario.SubjectBuiltin, "v1.36.3"), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	third, err := edit([]byte(manifest), apiserverImage(scenario.SubjectBuiltin, "v1.37.1"), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(second, []byte(manifest)) || bytes.Equal(second, third) {
		t.Error("two incarnations have one manifest")
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(third, &pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	if c.Image != "registry.k8s.io/kube-apiserver:v1.37.1" || pod.Annotations["other"] != "kept" || len(c.Command) != 2 || c.LivenessProbe == nil || !pod.Spec.HostNetwork {
		t.Errorf("something was lost:\n%s", third)
	}
	if _, err := edit([]byte("kind: Pod\n"), "image", 1, nil); err == nil {
		t.Error("a pod without containers was edited")
	}
}

// The arguments of a kube-apiserver are those in its manifest after the edit.
func TestTheCommandLineOfAPod(t *testing.T) {
	args, err := commandLine([]byte(manifest), func(c *corev1.Container) { setUp(c, []Argument{{Name: "emulated-version", Value: "1.35"}}) })
	if want := []string{"--secure-port=6443", "--emulated-version=1.35"}; err != nil || !slices.Equal(args, want) {
		t.Errorf("got %q, %v, want %q", args, err, want)
	}
	if _, err := commandLine([]byte("kind: Pod\n"), nil); err == nil {
		t.Error("a pod without containers has a command line")
	}
}

func TestLogsAreAsTheProgramWroteThem(t *testing.T) {
	var out bytes.Buffer
	u := &unwrapped{w: &out}
	for _, part := range []string{
		"2026-11-21T20:00:00.1Z stderr F I1121 starting  up\n2026-11-21T20:00:00.2Z std",
		"err P panic: \n2026-11-21T20:00:00.3Z stderr F half of it\n", "2026-11-21T20:00:00.4Z stdout F \n",
	} {
		if _, err := u.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "I1121 starting  up\npanic: half of it\n\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// kind calls us between its stages: there the fabric is put between nodes on which nothing runs
// yet.
func TestStagesOfKindAreShownAndUsed(t *testing.T) {
	var all bytes.Buffer
	var said []string
	stages := 0
	l := &logger{all: &all, status: func(format string, a ...any) { said = append(said, strings.TrimSpace(format)+a[0].(string)) }, stage: func() { stages++ }}
	l.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 📦")
	l.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 📦")
	l.V(3).Info("kubeadm said this")
	l.Warn("here be dragons")
	if !slices.Equal(said, []string{"kind: %sPreparing nodes"}) || stages != 2 {
		t.Errorf("said %q, %d stages", said, stages)
	}
	if got := strings.Count(all.String(), "\n"); got != 4 {
		t.Errorf("%d lines in the log, want all 4:\n%s", got, all.String())
	}
}
