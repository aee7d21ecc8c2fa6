package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/scenario"
)

// loadPairs is how many pairs of clusters TestLoad compares. 'make load' asks for it.
var loadPairs = flag.Int("load", 0, "compare how the reference and the builtin proxy serve under load, in so many pairs of clusters")

// loadRuns is where the runs' directories are kept.
var loadRuns = flag.String("load-runs", "", "for TestLoad: keep the directories of its runs in this one")

const loadFile = "load.json"

// TestLoad loads an older server in the ways of [loads], and measures what other callers get there
// meanwhile: with the reference, and with an unchanged kube-apiserver and its own proxy. It prints
// a table, and asserts no time.
func TestLoad(t *testing.T) {
	if isInside() {
		writeInside(t, loadFile, newLoaded(t).measure())
		return
	}
	if *loadPairs < 1 {
		t.Skip("a measurement, of minutes: 'make load' runs it")
	}
	all := inPairs[[]under](t, *loadPairs, loadFile)
	fmt.Println("| load | whose requests | p50 | p99 | failed: reference | failed: builtin |\n|---|---|---|---|---|---|")
	for i, row := range all[scenario.SubjectBuiltin][0] {
		var p50, p99 []float64
		var failed, sent [2]int
		for pair := range *loadPairs {
			builtin, reference := all[scenario.SubjectBuiltin][pair][i], all[scenario.SubjectReference][pair][i]
			p50 = append(p50, math.Log(reference.P50/builtin.P50))
			p99 = append(p99, math.Log(reference.P99/builtin.P99))
			for j, u := range []under{reference, builtin} {
				failed[j] += u.Failed
				sent[j] += u.Sent
			}
		}
		fmt.Printf("| %s | %s | %s | %s | %d of %d | %d of %d |\n", row.Load, row.Whose, spread(p50), spread(p99), failed[0], sent[0], failed[1], sent[1])
	}
}

// inPairs runs the calling test inside clusters of two servers, with the builtin proxy and with the
// reference in alternation, and returns what it wrote into a file of each run, by subject.
func inPairs[T any](t *testing.T, pairs int, file string) map[string][]T {
	t.Helper()
	needsTools(t, "nsenter")
	subjects := []string{scenario.SubjectBuiltin, scenario.SubjectReference}
	all := map[string][]T{}
	for i := range pairs {
		for j := range subjects {
			subject := subjects[(i+j)%len(subjects)]
			held := beginBy(t, nil, "The cluster stays up", "--subject", subject, "--keep", "--no-load", "--at", "1", "--servers", "2")
			held.again(t, 10*time.Minute)
			held.end(t, syscall.SIGINT)
			content, err := os.ReadFile(filepath.Join(held.dir, file))
			must(t, err)
			var one T
			must(t, json.Unmarshal(content, &one))
			all[subject] = append(all[subject], one)
			if *loadRuns != "" {
				must(t, os.CopyFS(filepath.Join(*loadRuns, fmt.Sprintf("%d-%s", i, subject)), os.DirFS(held.dir)))
			}
		}
	}
	return all
}

// spread is the mean of ratios, given as logarithms, with the smallest and the largest.
func spread(logs []float64) string {
	mean, _ := interval(append(logs, logs...)) // an interval needs two values
	return fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(mean), math.Exp(slices.Min(logs)), math.Exp(slices.Max(logs)))
}

// under is what one kind of requests got under a load. Times are in seconds.
type under struct {
	Load, Whose  string
	P50, P99     float64
	Sent, Failed int
}

// load is what some callers do, each with a connection of its own, until the time is over.
type load struct {
	name    string
	callers int
	each    int           // requests of a caller at a time
	pause   time.Duration // of a caller, after a request
	request func(l *loaded, c *visitor, name string) (*http.Request, error)
	slowly  time.Duration // for how long the reader of an answer pauses
	restart bool          // the older server is stopped and started meanwhile, and the others come by the balancer
}

const (
	loadTime    = 12 * time.Second
	shortWait   = "5s"
	longWait    = "20s"
	waitingName = "skewproof.github.io/wait" // the label of an object whose creation waits for a webhook
)

var loads = []load{
	{name: "none"},
	{name: "one caller, 250 creates at a time that wait 5 s for a webhook", callers: 1, each: 250, request: waitingFor(shortWait)},
	{name: "10 callers, creates that wait 20 s for a webhook", callers: 10, each: 1, request: waitingFor(longWait)},
	{name: "200 callers, a list a second each", callers: 200, each: 1, pause: time.Second, request: listing("?limit=1")},
	{name: "4 callers, lists of 5 MB", callers: 4, each: 1, request: listing("")},
	{name: "20 callers, lists of 5 MB whose readers pause for 3 s", callers: 20, each: 1, slowly: 3 * time.Second, request: listing("")},
	{name: "50 callers, creates whose bodies come in pieces over 3 s", callers: 50, each: 1, request: inPieces},
	{name: "the server restarts, HTTP/2 clients behind a balancer", restart: true},
}

func listing(query string) func(*loaded, *visitor, string) (*http.Request, error) {
	return func(l *loaded, c *visitor, _ string) (*http.Request, error) {
		return http.NewRequestWithContext(l.Context(), http.MethodGet, c.at+onlyNewer+query, nil)
	}
}

func waitingFor(wait string) func(*loaded, *visitor, string) (*http.Request, error) {
	return func(l *loaded, c *visitor, name string) (*http.Request, error) {
		return http.NewRequestWithContext(l.Context(), http.MethodPost, c.at+onlyNewer, strings.NewReader(taintRule(name, waitingName, wait)))
	}
}

func inPieces(l *loaded, c *visitor, name string) (*http.Request, error) {
	reader, writer := io.Pipe()
	go func() {
		body := taintRule(name, "", "")
		for piece := range slices.Chunk([]byte(body), len(body)/10) {
			if _, err := writer.Write(piece); err != nil {
				return // the request has ended
			}
			l.wait(300 * time.Millisecond)
		}
		writer.Close()
	}()
	return http.NewRequestWithContext(l.Context(), http.MethodPost, c.at+onlyNewer, reader)
}

func taintRule(name, label, value string) string {
	labels := "{}"
	if label != "" {
		labels = fmt.Sprintf("{%q:%q}", label, value)
	}
	return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":%q,"labels":%s},
		"spec":{"deviceSelector":{"driver":"example.com"},"taint":{"key":"example.com/taint","value":"yes","effect":"NoSchedule"}}}`, name, labels)
}

// loaded is the half of the test inside the sandbox.
type loaded struct {
	*costs
	named atomic.Int64
}

// visitor is one caller, with a user and a connection of its own.
type visitor struct {
	*http.Client
	at string
}

func newLoaded(t *testing.T) *loaded {
	l := &loaded{costs: newClients(t, "b")}
	for i := range 40 {
		l.create(l.newer, fmt.Sprintf("big-%d", i), 128<<10)
	}
	l.do(l.newer, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"load"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"load"}]}`)
	l.serveWebhook()
	return l
}

// serveWebhook serves a validating webhook that allows what it is asked about, as late as a label
// of the object says.
func (l *loaded) serveWebhook() {
	towards, err := net.Dial("udp", strings.TrimPrefix(l.at[l.newer], "https://"))
	must(l.T, err)
	mine := towards.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	towards.Close()
	authority, err := pki.NewAuthority(l.TempDir(), "webhook")
	must(l.T, err)
	pair, err := authority.Issue("webhook-serving", pki.Request{CommonName: "webhook", Addresses: []netip.Addr{mine}, Server: true})
	must(l.T, err)
	listener, err := net.Listen("tcp", netip.AddrPortFrom(mine, 0).String())
	must(l.T, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID    string
				Object struct {
					Metadata struct{ Labels map[string]string }
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if d, err := time.ParseDuration(review.Request.Object.Metadata.Labels[waitingName]); err == nil {
			l.wait(d)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
	})}
	go func() { _ = server.ServeTLS(listener, pair.Cert, pair.Key) }()
	l.Cleanup(func() { server.Close() })
	ca, err := os.ReadFile(authority.CertFile())
	must(l.T, err)
	l.do(l.newer, http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{"metadata":{"name":"load"},
		"webhooks":[{"name":"load.skewproof.github.io","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":30,"failurePolicy":"Fail",
		"objectSelector":{"matchExpressions":[{"key":%q,"operator":"Exists"}]},
		"rules":[{"apiGroups":["resource.k8s.io"],"apiVersions":["*"],"operations":["CREATE"],"resources":["devicetaintrules"]}],
		"clientConfig":{"url":"https://%s/","caBundle":%q}}]}`, waitingName, listener.Addr(), base64.StdEncoding.EncodeToString(ca)))
	eventually(l.T, "the webhook is asked", time.Minute, func() bool {
		began := time.Now()
		l.do(l.newer, http.MethodPost, onlyNewer, taintRule(l.name(), waitingName, "100ms"))
		return time.Since(began) > 100*time.Millisecond
	})
}

// visitor returns a caller that reaches the cluster by a way, such as "b-direct".
func (l *loaded) visitor(user, way string) *visitor {
	config := insideConfig(l.T, way)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"load", "system:authenticated"}}
	config.Dial = (&net.Dialer{}).DialContext // client-go shares no connection between configurations that have dialers of their own
	config.Timeout = time.Minute
	client, err := rest.HTTPClientFor(config)
	must(l.T, err)
	return &visitor{Client: client, at: config.Host}
}

// name is a new name of an object.
func (l *loaded) name() string { return fmt.Sprintf("load-%d", l.named.Add(1)) }

// wait lets some time go by, unless the test ends before.
func (l *loaded) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.Context().Done():
	}
}

// measure returns what the requests under every load got, those of the others first.
func (l *loaded) measure() (all []under) {
	for _, load := range loads {
		way := "b-direct"
		if load.restart {
			way = "balancer"
		}
		ctx, end := context.WithCancel(l.Context())
		var together sync.WaitGroup
		its := &taken{}
		for i := range load.callers {
			caller := l.visitor(fmt.Sprintf("load-%d", i), way)
			for range load.each {
				together.Go(func() {
					for ctx.Err() == nil {
						if r, err := load.request(l, caller, l.name()); err != nil {
							l.Error(err)
						} else {
							its.send(caller, r, load.slowly)
						}
						l.wait(load.pause)
					}
				})
			}
		}
		kinds := []struct{ whose, path string }{
			{"others, served locally", "/api/v1/namespaces/default"}, {"others, passed on", onlyNewer + "/big-0"},
		}
		others := make([]*taken, len(kinds))
		for i, kind := range kinds {
			others[i] = &taken{}
			for user := range 10 {
				caller := l.visitor(fmt.Sprintf("other-%d", user), way)
				together.Go(func() {
					for ctx.Err() == nil {
						if r, err := http.NewRequestWithContext(l.Context(), http.MethodGet, caller.at+kind.path, nil); err != nil {
							l.Error(err)
						} else {
							others[i].send(caller, r, 0)
						}
						l.wait(100 * time.Millisecond)
					}
				})
			}
		}
		if load.restart {
			l.wait(loadTime / 4)
			if said, err := exec.CommandContext(ctx, os.Getenv(insideVariable), "step", insideRun(), "restart", "b").CombinedOutput(); err != nil {
				l.Errorf("restart b: %v\n%s", err, said)
			}
		}
		l.wait(loadTime)
		end()
		together.Wait()
		for i, kind := range kinds {
			all = append(all, others[i].under(load.name, kind.whose))
		}
		if load.callers > 0 {
			all = append(all, its.under(load.name, "the load's own"))
		}
		l.Logf("%+v", all[len(all)-min(len(all), 3):])
	}
	return all
}

// taken collects how long requests took. It is safe for concurrent use.
type taken struct {
	mu      sync.Mutex
	seconds []float64
	failed  int
}

// send sends a request and reads the answer. The reader pauses once, if it is slow.
func (a *taken) send(c *visitor, r *http.Request, slowly time.Duration) {
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := c.Do(r)
	if err == nil {
		if slowly > 0 {
			_, err = io.CopyN(io.Discard, answer.Body, 64<<10)
			select {
			case <-time.After(slowly):
			case <-r.Context().Done():
			}
		}
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		answer.Body.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seconds = append(a.seconds, time.Since(began).Seconds())
	if err != nil || answer.StatusCode/100 != 2 {
		a.failed++
	}
}

func (a *taken) under(load, whose string) under {
	slices.Sort(a.seconds)
	n := len(a.seconds)
	return under{Load: load, Whose: whose, P50: a.seconds[n/2], P99: a.seconds[n*99/100], Sent: n, Failed: a.failed}
}
