package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/hostile"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/steady"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/reports"
)

// soakFor is the duration of the soak. 'make soak' asks for half an hour.
var soakFor = flag.Duration("soak", 2*time.Minute, "how long TestSoak lasts, with and without hostile clients")

// A long soak must show that no measure grows. A short one may be too short to show it.
const longSoak = 15 * time.Minute

// Every kind of hostile client attacks every server at once, in addition to the usual load.
// Meanwhile the kube-apiservers close connections at random, and certificates are rotated. No
// request of the load may fail, and every invariant must hold. Afterwards the sidecars must use as
// much memory and as many files, connections and goroutines as before.
func TestSoak(t *testing.T) {
	if isInside() {
		soak(t, *soakFor)
		return
	}
	needsTools(t, "nsenter")
	const margin = 30 * time.Second // time for the half inside to start and to end
	flags := []string{"--subject", "reference", "--servers", "2", "--qps", "60", "--soak", (*soakFor + margin).String(), "--keep"}
	running := begin(t, "let the load run for "+(*soakFor+margin).String(), append(flags, withGoaways(t, newPair.from, newPair.to)...)...)
	defer keep(t, running.dir, samplesFile, reports.HTMLFile, reports.JSONFile)
	running.again(t, *soakFor+5*time.Minute, "-soak="+soakFor.String())
	eventually(t, "the run has a verdict", 5*time.Minute, func() bool { return strings.Contains(running.out.String(), "The cluster stays up") })
	if code := running.end(t, syscall.SIGINT); code != pass {
		t.Errorf("exit code %d, want %d; output:\n%s", code, pass, running.out)
	}
	report, err := reports.Read(filepath.Join(running.dir, reports.JSONFile))
	must(t, err)
	if report.Verdict.Outcome == invariant.OutcomeInconclusive {
		t.Fatalf("inconclusive, so what failed proves nothing: %s", report.Verdict.Sentence)
	}
	for _, i := range report.Invariants {
		if i.Outcome == invariant.OutcomeFail { // also the demands beyond the KEP
			t.Errorf("%s: %s", i.Name, i.Reason)
		}
	}
	nothingFailed(t, filepath.Join(running.dir, "history.jsonl"))
}

// keep stores files of a run as artifacts if the tests were started with -artifacts.
func keep(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the test failed before the file was written
		}
		must(t, err)
		must(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name), content, 0o600))
	}
}

// nothingFailed checks that no request of the load failed. No server was disturbed, so the policy
// explains no failure.
func nothingFailed(t *testing.T, file string) {
	t.Helper()
	h, err := history.ReadFile(file)
	must(t, err)
	failed, sent := map[string]int{}, 0
	for _, o := range h.Operations {
		if o.Failure == history.FailureCanceled {
			continue // in progress when the run ended
		}
		sent++
		if o.Failure != history.FailureNone || o.Status >= http.StatusInternalServerError || o.Status == http.StatusTooManyRequests ||
			o.Status == http.StatusUnauthorized || o.Status == http.StatusRequestTimeout {
			// The reason of the failure matters more than the content of the request.
			_, why, _ := strings.Cut(o.Message, "cannot be served")
			failed[fmt.Sprintf("%s request as %s: %d %s %s %s", o.Purpose, o.User, o.Status, o.Failure, o.Error, cmp.Or(why, o.Message))]++
		}
	}
	for what, n := range failed {
		t.Errorf("%d times, a %s", n, what)
	}
	t.Logf("%d requests of the load; failed: %d kinds", sent, len(failed))
	if sent < 5000 {
		t.Errorf("%d requests of the load prove nothing", sent)
	}
}

// soak is the half inside the sandbox. It attacks, and watches the measures of the sidecars.
func soak(t *testing.T, whole time.Duration) {
	targets := hostileTargets(t)
	watch := &watcher{sidecars: sidecarsOfRun(t)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { watch.run(ctx) })
	defer watch.save(t)
	beside := min(whole/5, 3*time.Minute) // without hostile clients: before and after the attack

	await(t, beside)
	before := watch.since(0)
	began := watch.now()
	attacked, end := context.WithTimeout(ctx, whole-2*beside)
	defer end()
	done := make([][]hostile.Done, len(targets))
	var attacks sync.WaitGroup
	for i, target := range targets {
		attacks.Go(func() { done[i] = hostile.Attack(attacked, hostile.All(), target) })
	}
	rotated := 0
	attacks.Go(func() { rotated = rotateCertificates(attacked, t, watch.sidecars) })
	attacks.Wait()
	t.Logf("certificates were rotated %d times", rotated)
	if rotated == 0 && whole-2*beside > 2*rotateEvery {
		t.Error("no certificate was rotated")
	}
	during := watch.since(began + hostile.Settled(hostile.All()))
	ended := watch.now()

	for _, all := range done {
		for _, d := range all {
			t.Log(d)
			if d.Attacks == 0 || d.Failed > d.Attacks/10 {
				t.Errorf("this client proves nothing: %s", d)
			}
		}
	}
	await(t, beside)
	watch.comesBack(t, before, ended)
	cancel()
	watching.Wait()
	must(t, watch.err)
	for name, samples := range during {
		verdict := steady.Judge(samples, limitsOf(name))
		t.Logf("%s under attack: %s: %s", name, verdict.Outcome, verdict.Reason)
		if verdict.Outcome == steady.Grows || verdict.Outcome == steady.Inconclusive && whole >= longSoak {
			t.Errorf("%s under attack: %s, want %s", name, verdict.Outcome, steady.Steady)
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

// hostileTargets are the servers of the run, for users without rights.
func hostileTargets(t *testing.T) (all []hostile.Target) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(insideConfig(t, "a"))
	must(t, err)
	tokens, readers := hostileAccounts(t, admin, "skewproof-hostile", 4), hostileAccounts(t, admin, "skewproof-hostile-reader", 2)
	_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "skewproof-hostile-reader"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "skewproof-hostile-reader"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "skewproof-hostile-reader"}}
	for i := range readers {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: workload.Namespace, Name: fmt.Sprint("skewproof-hostile-reader-", i)})
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	for _, s := range sidecarsOfRun(t) {
		config := insideConfig(t, s.name)
		trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
		must(t, err)
		at, err := url.Parse(config.Host)
		must(t, err)
		all = append(all, hostile.Target{
			Address: at.Host, TLS: trust, Tokens: tokens, Readers: readers,
			Resources: []string{
				"/api/v1/namespaces/" + workload.Namespace + "/configmaps", // every server serves it
				"/apis/resource.k8s.io/v1/devicetaintrules",                // only the newer server serves it
				"/apis/storage.k8s.io/v1beta1/volumeattributesclasses",     // only the older server serves it
			},
			Pod: "/api/v1/namespaces/" + workload.Namespace + "/pods/skewproof-absent", Large: "/openapi/v2",
		})
	}
	return all
}

// hostileAccounts creates service accounts without rights, and returns their tokens.
func hostileAccounts(t *testing.T, admin kubernetes.Interface, prefix string, n int) (tokens []string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprint(prefix, "-", i)
		accounts := admin.CoreV1().ServiceAccounts(workload.Namespace)
		_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		must(t, err)
		tokens = append(tokens, token.Status.Token)
	}
	return tokens
}

// These are the measures of a sidecar that are watched.
const (
	goroutines = "go_goroutines"
	openFiles  = "process_open_fds"
	heapTarget = "go_memstats_next_gc_bytes" // twice the live memory at the last collection
	resident   = "process_resident_memory_bytes"
)

// limitsOf returns the allowed growth of a measure.
func limitsOf(measure string) steady.Limits {
	l := steady.Limits{Samples: 60, Time: 5 * time.Minute}
	switch _, name, _ := strings.Cut(measure, " "); name {
	case goroutines:
		l.Share, l.Amount = 0.1, 30
	case openFiles:
		l.Share, l.Amount = 0.1, 20
	case heapTarget:
		l.Share, l.Amount = 0.25, 16<<20
	default:
		l.Share, l.Amount = 0.25, 32<<20
	}
	return l
}

// watcher reads the measures of all sidecars.
type watcher struct {
	sidecars []sidecarProcess
	mu       sync.Mutex
	start    time.Time
	all      map[string][]steady.Sample // by sidecar and measure: "a go_goroutines"
	err      error                      // the first reading that failed
}

const watchEvery = time.Second

func (w *watcher) run(ctx context.Context) {
	w.mu.Lock()
	w.start, w.all = time.Now(), map[string][]steady.Sample{}
	w.mu.Unlock()
	for tick := time.NewTicker(watchEvery); ctx.Err() == nil; {
		for _, s := range w.sidecars {
			values, err := s.read(ctx, goroutines, openFiles, heapTarget, resident)
			w.add(ctx, s.name, values, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
		}
	}
}

func (w *watcher) add(ctx context.Context, sidecar string, values map[string]float64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		w.err = errors.Join(w.err, err)
	}
	for name, value := range values {
		w.all[sidecar+" "+name] = append(w.all[sidecar+" "+name], steady.Sample{At: time.Since(w.start), Value: value})
	}
}

func (w *watcher) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.start)
}

// since returns the samples from a time on.
func (w *watcher) since(from time.Duration) map[string][]steady.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := map[string][]steady.Sample{}
	for name, samples := range w.all {
		some[name] = slices.DeleteFunc(slices.Clone(samples), func(s steady.Sample) bool { return s.At < from })
	}
	return some
}

// comesBack waits until each measure is about as large as before the attack. Memory that the
// process got from the operating system need not be returned.
func (w *watcher) comesBack(t *testing.T, before map[string][]steady.Sample, ended time.Duration) {
	t.Helper()
	const looked = 15 // samples
	for name, samples := range before {
		if len(samples) < looked {
			t.Fatalf("%s was looked at %d times before the attack: with less than %d, nothing can be said", name, len(samples), looked)
		}
	}
	above := map[string]string{}
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(above)) {
			t.Logf("%s: %s", name, above[name])
		}
	}()
	eventually(t, "the sidecars use as much as before the attack", 2*time.Minute, func() bool {
		same := true
		for name, now := range w.since(ended) {
			if strings.HasSuffix(name, resident) || len(now) < looked {
				same = same && len(now) >= looked
				continue
			}
			l := limitsOf(name)
			was, is := steady.Median(before[name]), steady.Median(now[len(now)-looked:])
			above[name] = fmt.Sprintf("%.0f before the attack, %.0f after it", was, is)
			if is > was+max(l.Amount, l.Share*was) {
				same = false
			}
		}
		return same
	})
}

// samplesFile contains the samples of each measure of each sidecar.
const samplesFile = "soak.json"

// save writes the samples to the directory of the run.
func (w *watcher) save(t *testing.T) {
	t.Helper()
	content, err := json.Marshal(w.since(0))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(insideRun(), samplesFile), content, 0o600))
}
