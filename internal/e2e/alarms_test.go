package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/ownership"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/upgrade"
)

// recordAlarms is true to keep what TestAlarms measures, for plans and docs/alarms.md. 'make
// alarms' asks for it.
var recordAlarms = flag.Bool("alarms", false, "write what TestAlarms measures into internal/upgrade")

const (
	alarmsFile = "alarms.json"
	// quietFor is how long each sign must have been flat before its situation.
	quietFor = time.Minute
	// controllersMetrics is where kube-controller-manager answers in the sandbox.
	controllersMetrics = "https://198.18.0.2:10257"
	deprecatedPath     = "/apis/networking.k8s.io/v1beta1/ipaddresses"
)

// Every sign that a plan tells operators to watch rises in its situations, within the time that the
// plan says, after it was flat for a minute. Signs that look like alarms and are none stay flat.
func TestAlarms(t *testing.T) {
	if isInside() {
		newAlarms(t, flag.Arg(0)).carryOut()
		return
	}
	if !*recordAlarms {
		onlyWithAll(t)
	}
	needsTools(t, "nsenter", "bash")
	kubectl := run(t, "binaries", "get", "--component", "kubectl", newPair.from)
	exits(t, kubectl, pass)
	lines := strings.Fields(kubectl.output)
	held := beginScenario(t, "controllers-wrong-peer-ca", nil, "The cluster stays up", "--keep", "--no-load", "--at", "2", "--servers", "6",
		"--from", newPair.from, "--to", newPair.to)
	held.again(t, 8*time.Minute, filepath.Dir(lines[len(lines)-1]))
	held.end(t, syscall.SIGINT)
	if *recordAlarms && !t.Failed() {
		content, err := os.ReadFile(filepath.Join(held.dir, alarmsFile))
		must(t, err)
		must(t, os.WriteFile(filepath.Join("..", "upgrade", alarmsFile), content, 0o644))
	}
}

// series are the values of one sign at one server.
type series struct{ sign, server string }

type point struct {
	at    time.Time
	value float64
}

// begun is a situation that was made.
type begun struct {
	server string
	at     time.Time
}

// alarms is the half of the test inside the sandbox. Server a is the only newer one. The
// controllers are clients of b.
type alarms struct {
	*testing.T
	ctx   context.Context
	env   []string // of commands
	table upgrade.AlarmTable
	probe string

	mu     sync.Mutex
	points map[series][]point
	begun  map[string]begun
}

func newAlarms(t *testing.T, programs string) *alarms {
	older, newer, err := upgrade.Find(newPair.from, newPair.to)
	must(t, err)
	plan, _ := upgrade.Make(upgrade.Options{From: older, To: newer})
	table := upgrade.Alarms(plan)
	i := slices.IndexFunc(table.Alarms, func(a upgrade.Alarm) bool { return a.Name == "probe" })
	words := strings.Fields(table.Alarms[i].Sign)
	return &alarms{
		T: t, ctx: t.Context(), table: table, probe: words[len(words)-1],
		env:    append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+t.TempDir()),
		points: map[series][]point{}, begun: map[string]begun{},
	}
}

// at are the servers that clients ask in the situations. For a crash, it is the one that crashes.
var at = map[string]string{
	"crashed": "a", "restarted": "c", "passed-on": "d", "deprecated": "d", "killed": "e", "paused": "e", "cut": "b", "black-hole": "d", "no-proxy": "f",
	"wrong-ca": "c", "forgotten": "b", "broken": "e", "namespace": "b", "collected": "b",
}

// carryOut makes the situations one after the other, several at a time where they do not touch.
func (a *alarms) carryOut() {
	record := upgrade.AlarmRecord{
		From: newPair.from, To: newPair.to, Quiet: int(quietFor.Seconds()), Rung: map[string]map[string]float64{}, Flat: map[string][]string{},
	}
	record.Emptied = a.emptied()
	var watchers sync.WaitGroup
	ctx, cancel := context.WithCancel(a.ctx)
	defer watchers.Wait()
	defer cancel()
	a.ctx = ctx
	a.watch(&watchers)
	for _, server := range []string{"b", "e", "f"} {
		watchers.Go(func() { a.ask(server, a.probe) })
	}
	a.quiet()
	a.begin("passed-on", "deprecated")
	watchers.Go(func() { a.ask("d", a.probe) })
	a.get("d", deprecatedPath)
	a.ring("passed-on", "deprecated")
	a.begin("wrong-ca", "restarted")
	a.restart("c", scenario.Setup{PeerCA: scenario.TrustStranger})
	a.begin("no-proxy")
	a.restart("f", scenario.Setup{PeerCA: scenario.TrustMissing})
	a.ring("wrong-ca", "restarted", "no-proxy")
	a.step("restart", "c")
	a.step("restart", "f")
	a.settle("b", "c", "d", "e", "f")

	a.begin("killed", "crashed")
	a.step("kill", "a")
	a.ring("killed", "crashed")
	a.step("start", "a")
	a.create("a", "podcertificaterequests", "in-the-namespace", "alarms")
	a.serve("b", "c", "d", "e", "f")

	a.quiet()
	a.begin("cut", "black-hole", "namespace")
	a.step("cut", "b", "a")
	a.step("timeout", "d", "a")
	a.deleteNamespace("alarms")
	a.ring("cut", "black-hole", "namespace")

	dependents, end := context.WithCancel(a.ctx)
	watchers.Go(func() { a.dependents(dependents) })
	await(a.T, 5*time.Second)
	a.begin("forgotten", "collected")
	later := make(chan float64, 1)
	watchers.Go(func() { later <- a.takes("d") })
	a.step("restart", "c")
	a.ring("forgotten", "collected")
	end()
	record.Later.Dropped = <-later
	a.step("heal")

	a.begin("broken")
	a.step("break-discovery", "a", "/apis")
	a.step("restart", "c")
	a.ring("broken")
	a.step("restore-discovery", "a", "/apis")
	a.settle("e")

	a.begin("paused")
	a.step("pause", "a")
	a.ring("paused")
	record.Later.Paused = a.takes("e")
	a.step("resume", "a")

	cancel()
	watchers.Wait()
	a.judge(&record)
	content, err := json.MarshalIndent(record, "", "  ")
	must(a.T, err)
	a.Logf("%s", content)
	must(a.T, os.WriteFile(filepath.Join(insideRun(), alarmsFile), append(content, '\n'), 0o600))
}

// begin notes that situations begin now.
func (a *alarms) begin(situations ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range situations {
		a.begun[s] = begun{at[s], time.Now()}
	}
}

func (a *alarms) step(words ...string) {
	step, err := scenario.ParseStep(words)
	must(a.T, err)
	a.do(step)
}

func (a *alarms) restart(server string, setup scenario.Setup) {
	a.do(scenario.Step{Action: scenario.Restart, Server: server, Setup: &setup})
}

// do carries out a step as 'skewproof step' does, which has no words for setups.
func (a *alarms) do(step scenario.Step) {
	dir, err := os.Open(insideRun()) // its path may be too long for the address of a socket
	must(a.T, err)
	defer func() { _ = dir.Close() }()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/step.sock", dir.Fd()))
	must(a.T, err)
	defer func() { _ = conn.Close() }()
	must(a.T, json.NewEncoder(conn).Encode(map[string]any{"step": step, "words": []string{step.String()}}))
	var answer struct{ Error string }
	must(a.T, json.NewDecoder(conn).Decode(&answer))
	if answer.Error != "" {
		a.Fatalf("%s: %s", step, answer.Error)
	}
	a.Logf("%s", step)
}

// config is the administrator's configuration, without a limit of its own.
func (a *alarms) config(server string) *rest.Config {
	config := rest.CopyConfig(insideConfig(a.T, server))
	config.QPS, config.Timeout = -1, time.Minute
	return config
}

// get returns the status of an answer; 0 without an answer.
func (a *alarms) get(server, path string) (code int) {
	client, err := kubernetes.NewForConfig(a.config(server))
	must(a.T, err)
	client.Discovery().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(a.ctx).StatusCode(&code)
	return code
}

// takes is how long a server takes for a 503, in seconds.
func (a *alarms) takes(server string) float64 {
	began := time.Now()
	if code := a.get(server, a.probe); code != http.StatusServiceUnavailable {
		a.Errorf("%s answers %d, want 503", server, code)
	}
	return math.Ceil(time.Since(began).Seconds()*10) / 10
}

// ask sends requests to a server, as a client that does not wait for answers.
func (a *alarms) ask(server, path string) {
	client, err := kubernetes.NewForConfig(a.config(server))
	must(a.T, err)
	var all sync.WaitGroup
	defer all.Wait()
	a.every(500*time.Millisecond, func() {
		all.Go(func() { client.Discovery().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(a.ctx) })
	})
}

// every calls a function until the test ends.
func (a *alarms) every(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// serve waits until servers answer for what only the newer one serves.
func (a *alarms) serve(servers ...string) {
	for _, s := range servers {
		eventually(a.T, s+" passes requests on", 90*time.Second, func() bool { return a.get(s, a.probe) == http.StatusOK })
	}
}

// settle also waits until they do not fetch discovery again, after the delay that doubles while a
// fetch fails. Otherwise a server forgets a peer that is killed then, and answers 404 for it.
func (a *alarms) settle(servers ...string) {
	a.serve(servers...)
	await(a.T, 20*time.Second)
}

func (a *alarms) quiet() { await(a.T, quietFor+5*time.Second) }

// watch reads all signs again and again.
func (a *alarms) watch(all *sync.WaitGroup) {
	var metrics []string
	for _, s := range a.table.Silent {
		metrics = append(metrics, s.Sign)
	}
	var ofControllers []string
	for _, alarm := range a.table.Alarms {
		switch alarm.Where {
		case upgrade.OfServer:
			metrics = append(metrics, alarm.Sign)
		case upgrade.OfControllers:
			ofControllers = append(ofControllers, alarm.Sign)
		case upgrade.OfLog:
			for _, server := range serversOf(alarm) {
				file := filepath.Join(insideRun(), "logs", server+".log")
				all.Go(func() { a.every(time.Second, func() { a.see(alarm.Sign, server, matching(file, alarm.Sign)) }) })
			}
		case upgrade.OfCommand:
			for _, server := range serversOf(alarm) {
				all.Go(func() { a.every(3*time.Second, func() { a.command(alarm, server) }) })
			}
		}
	}
	for _, server := range []string{"b", "c", "d", "e", "f"} {
		client, err := rest.HTTPClientFor(a.config(server))
		must(a.T, err)
		url := a.config(server).Host + "/metrics"
		all.Go(func() { a.every(time.Second, func() { a.scrape(client, url, server, metrics) }) })
	}
	config := a.config("b")
	config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData, config.TLSClientConfig.Insecure = "", nil, true
	client, err := rest.HTTPClientFor(config)
	must(a.T, err)
	all.Go(func() {
		a.every(time.Second, func() { a.scrape(client, controllersMetrics+"/metrics", at["forgotten"], ofControllers) })
	})
}

// serversOf are the servers at which an alarm must rise.
func serversOf(alarm upgrade.Alarm) (servers []string) {
	for _, r := range alarm.Rings {
		if !slices.Contains(servers, at[r.Situation]) {
			servers = append(servers, at[r.Situation])
		}
	}
	return servers
}

func (a *alarms) see(sign, server string, value float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := series{sign, server}
	a.points[s] = append(a.points[s], point{time.Now(), value})
}

// matching counts the lines of a file that contain a text.
func matching(file, text string) (n float64) {
	content, _ := os.ReadFile(file)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// scrape reads metrics. A sign has a name and labels; the values of all its series are added.
func (a *alarms) scrape(client *http.Client, url, server string, signs []string) {
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(a.T, err)
	answer, err := client.Do(request)
	if err != nil {
		return // it does not run
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
		return
	}
	sums := make([]float64, len(signs))
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		for i, sign := range signs {
			name, labels, _ := strings.Cut(strings.TrimSuffix(sign, "}"), "{")
			rest, is := strings.CutPrefix(lines.Text(), name)
			if !is || rest == "" || rest[0] != '{' && rest[0] != ' ' {
				continue
			}
			for label := range strings.SplitSeq(labels, ",") {
				is = is && strings.Contains(rest, label)
			}
			if value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64); is && err == nil {
				sums[i] += value
			}
		}
	}
	if lines.Err() != nil {
		return // it broke off
	}
	for i, sign := range signs {
		a.see(sign, server, sums[i])
	}
}

// command carries out a command of a plan, with the addresses of the servers in it, and counts the
// lines of its output that are an alarm.
func (a *alarms) command(alarm upgrade.Alarm, server string) {
	node := server
	if strings.Contains(alarm.Sign, "OLD-NODE") {
		node = "a"
	}
	words := strings.NewReplacer("https://OLD-NODE:6443", a.config(server).Host, "https://NODE:6443", a.config(node).Host,
		"/var/log/kubernetes/audit/audit.log", filepath.Join(insideRun(), "logs", server+"-audit.jsonl")).Replace(alarm.Sign)
	ctx, cancel := context.WithTimeout(a.ctx, time.Minute) // a server counts 503 if its client gives up
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", words)
	cmd.Env, cmd.WaitDelay = a.env, time.Second
	out, _ := cmd.CombinedOutput() // grep fails if it finds nothing
	if ctx.Err() == nil {
		a.see(alarm.Sign, server, float64(len(regexp.MustCompile("(?m)"+alarm.Match+".*$").FindAll(out, -1))))
	}
}

// ring waits until every alarm of the situations rises, or is too late.
func (a *alarms) ring(situations ...string) {
	const patience = 20 * time.Second
	for _, name := range situations {
		for _, alarm := range a.table.Alarms {
			for _, r := range alarm.Rings {
				if r.Situation != name {
					continue
				}
				until := a.begun[name].at.Add(time.Duration(r.Within)*time.Second + patience)
				for time.Now().Before(until) && a.rose(alarm, name) == 0 {
					await(a.T, 200*time.Millisecond)
				}
			}
		}
	}
}

// rose is the number of seconds after which an alarm rose in a situation; 0 if it did not.
func (a *alarms) rose(alarm upgrade.Alarm, situation string) (seconds float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.begun[situation]
	before, since, stays := 0.0, time.Time{}, time.Duration(alarm.Stays)*time.Second
	for _, p := range a.points[series{alarm.Sign, b.server}] {
		switch {
		case p.at.Before(b.at):
			before = p.value
		case p.value <= before:
			since = time.Time{}
		default:
			if since.IsZero() {
				since = p.at
			}
			if p.at.Sub(since) >= stays {
				return math.Ceil(p.at.Sub(b.at).Seconds()*10) / 10
			}
		}
	}
	return 0
}

// moved says how a sign moved in the minute before a situation; empty if it was flat.
func (a *alarms) moved(sign, situation string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.begun[situation]
	var values []float64
	n := 0
	for _, p := range a.points[series{sign, b.server}] {
		if p.at.After(b.at) || p.at.Before(b.at.Add(-quietFor)) {
			continue
		}
		if n++; len(values) == 0 || values[len(values)-1] != p.value {
			values = append(values, p.value)
		}
	}
	if n < int(quietFor.Seconds())/6 || len(values) != 1 {
		return fmt.Sprintf("seen %d times, with the values %v", n, values)
	}
	return ""
}

// judge compares the table with what was seen.
func (a *alarms) judge(record *upgrade.AlarmRecord) {
	for _, alarm := range a.table.Alarms {
		for _, r := range alarm.Rings {
			seconds := a.rose(alarm, r.Situation)
			a.Logf("%s, %s: %.1f s of %d s", alarm.Name, r.Situation, seconds, r.Within)
			if how := a.moved(alarm.Sign, r.Situation); how != "" {
				a.Errorf("%s was not flat for a minute before %q at %s: %s", alarm.Sign, r.Situation, at[r.Situation], how)
			}
			if seconds == 0 || seconds > float64(r.Within) {
				a.Errorf("%s in %q at %s: after %.1f s (0: never), want within %d s", alarm.Sign, r.Situation, at[r.Situation], seconds, r.Within)
			}
			if record.Rung[alarm.Name] == nil {
				record.Rung[alarm.Name] = map[string]float64{}
			}
			record.Rung[alarm.Name][r.Situation] = seconds
		}
	}
	for _, s := range a.table.Silent {
		for _, situation := range s.Situations {
			if n := a.rose(upgrade.Alarm{Sign: s.Sign}, situation); n != 0 {
				a.Errorf("%s rose after %.1f s in %q, and is said to stay flat", s.Sign, n, situation)
			}
		}
		record.Flat[s.Sign] = s.Situations
	}
}

// create creates an object of a kind that only the newer server serves.
func (a *alarms) create(through, resource, name, namespace string) *unstructured.Unstructured {
	if namespace != "" {
		client, err := kubernetes.NewForConfig(a.config(through))
		must(a.T, err)
		_, err = client.CoreV1().Namespaces().Create(a.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(a.T, err)
	}
	fields, err := ownership.Fields("certificates.k8s.io", resource, name)
	must(a.T, err)
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion("certificates.k8s.io/v1")
	o.SetKind(map[string]string{"clustertrustbundles": "ClusterTrustBundle", "podcertificaterequests": "PodCertificateRequest"}[resource])
	o.SetName(name)
	client, err := dynamic.NewForConfig(a.config(through))
	must(a.T, err)
	gvr := schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: resource}
	if namespace == "" {
		o, err = client.Resource(gvr).Create(a.ctx, o, metav1.CreateOptions{})
	} else {
		o, err = client.Resource(gvr).Namespace(namespace).Create(a.ctx, o, metav1.CreateOptions{})
	}
	must(a.T, err)
	return o
}

func (a *alarms) deleteNamespace(name string) {
	client, err := kubernetes.NewForConfig(a.config("b"))
	must(a.T, err)
	must(a.T, client.CoreV1().Namespaces().Delete(a.ctx, name, metav1.DeleteOptions{}))
}

// emptied is how long the deletion of a namespace takes while nothing fails, in seconds.
func (a *alarms) emptied() float64 {
	const name = "alarms-before"
	a.create("a", "podcertificaterequests", "in-the-namespace", name)
	began := time.Now()
	a.deleteNamespace(name)
	eventually(a.T, "the namespace is gone", time.Minute, func() bool { return a.get("b", "/api/v1/namespaces/"+name) == http.StatusNotFound })
	return math.Ceil(time.Since(began).Seconds()*10) / 10
}

// dependents creates owners that exist, and an object of each, until ctx ends. The garbage
// collector looks for each owner, and takes a 404 for its end. It does so until it has read
// discovery again, for half a minute after the kind is forgotten.
func (a *alarms) dependents(ctx context.Context) {
	client, err := kubernetes.NewForConfig(a.config("b"))
	must(a.T, err)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			owner := a.create("a", "clustertrustbundles", fmt.Sprint("alarms-owner-", n), "")
			of := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
			_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("alarms-dependent-", n), OwnerReferences: []metav1.OwnerReference{of},
			}}, metav1.CreateOptions{})
		}
	}
}

// await waits while the load runs.
func await(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
