package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/scenario"
)

// costPairs is how many pairs of clusters TestCost compares. 'make cost' asks for it.
var costPairs = flag.Int("cost", 0, "compare the cost of the reference with that of the builtin proxy, in so many pairs of clusters")

const costFile = "cost.json"

// TestCost measures what a request costs with the reference, relative to the proxy that
// kube-apiserver has. It compares clusters of two servers, of which the older one is asked, in
// alternation, and prints the ratios. It asserts no time.
func TestCost(t *testing.T) {
	if isInside() {
		writeInside(t, costFile, newCosts(t))
		return
	}
	if *costPairs < 2 {
		t.Skip("a measurement, of minutes: 'make cost' runs it")
	}
	all := inPairs[map[string]float64](t, *costPairs, costFile)
	fmt.Println("| what | reference / builtin | 95 % interval |\n|---|---|---|")
	for _, what := range slices.Sorted(maps.Keys(all[scenario.SubjectBuiltin][0])) {
		var logs []float64
		for i := range *costPairs {
			logs = append(logs, math.Log(all[scenario.SubjectReference][i][what]/all[scenario.SubjectBuiltin][i][what]))
		}
		mean, half := interval(logs)
		fmt.Printf("| %s | %.2f | %.2f to %.2f |\n", what, math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half))
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
		}
	}
	return all
}

// writeInside writes what a test measured inside a cluster, for inPairs.
func writeInside(t *testing.T, file string, measured any) {
	t.Helper()
	content, err := json.Marshal(measured)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(insideRun(), file), content, 0o644))
}

// interval is the mean of values, and half of its 95 % interval by Student's distribution.
func interval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	quantiles := []float64{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26} // for 1, 2, … degrees of freedom
	return mean, quantiles[min(len(values)-2, len(quantiles)-1)] * math.Sqrt(squares/(n-1)/n)
}

// costs is the half of the test inside the sandbox.
type costs struct {
	*testing.T
	older, newer *http.Client
	at           map[*http.Client]string
}

// newClients makes the clients, and waits until the older server passes requests on.
func newClients(t *testing.T) *costs {
	c := &costs{T: t, at: map[*http.Client]string{}}
	for way, to := range map[string]**http.Client{"b-direct": &c.older, "a-direct": &c.newer} {
		config := insideConfig(t, way)
		client, err := rest.HTTPClientFor(config)
		must(t, err)
		*to, c.at[client] = client, config.Host
	}
	eventually(t, "b passes requests on", time.Minute, func() bool {
		answer, err := c.older.Get(c.at[c.older] + onlyNewer)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return c
}

// newCosts measures, and returns medians of times in seconds, CPU time in seconds a request, and
// memory in bytes.
func newCosts(t *testing.T) map[string]float64 {
	c := newClients(t)
	got := map[string]float64{"memory of an idle server": c.metric("process_resident_memory_bytes")}

	const local = "/api/v1/namespaces/default"
	c.median(300, func(int) { c.do(c.older, http.MethodGet, local, "") }) // connections, caches
	before := c.metric("process_cpu_seconds_total")
	got["GET that is served locally"] = c.median(4000, func(int) { c.do(c.older, http.MethodGet, local, "") })
	got["CPU time of a GET that is served locally"] = (c.metric("process_cpu_seconds_total") - before) / 4000

	c.create(c.newer, "one", 0)
	one := func(int) { c.do(c.older, http.MethodGet, onlyNewer+"/one", "") }
	c.median(50, one)
	got["GET that is passed on"] = c.median(1000, one)
	got["100 GETs that are passed on at once"] = c.median(20, func(int) {
		var together sync.WaitGroup
		for range 100 {
			together.Go(func() { one(0) })
		}
		together.Wait()
	})
	got["create that is passed on"] = c.median(200, func(i int) { c.create(c.older, "made-"+strconv.Itoa(i), 0) })
	got["watch event that is passed on, with its create"] = c.events(200)
	for i := range 40 {
		c.create(c.newer, "big-"+strconv.Itoa(i), 128<<10)
	}
	got["list of 5 MB that is passed on"] = c.median(15, func(int) { c.do(c.older, http.MethodGet, onlyNewer, "") })
	return got
}

// median does something n times, and returns the median of the times in seconds.
func (c *costs) median(n int, do func(i int)) float64 {
	var all []float64
	for i := range n {
		began := time.Now()
		do(i)
		all = append(all, time.Since(began).Seconds())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// do sends a request and reads the answer, which must be a success.
func (c *costs) do(client *http.Client, method, path, body string) {
	r, err := http.NewRequestWithContext(c.Context(), method, c.at[client]+path, strings.NewReader(body))
	if err == nil && body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if err != nil {
		c.Error(err)
		return
	}
	answer, err := client.Do(r)
	if err != nil {
		c.Error(err)
		return
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode/100 != 2 {
		c.Errorf("%s %s: status %d, %d bytes, %v", method, path, answer.StatusCode, n, err)
	}
}

// create makes an object of a kind that only the newer server has.
func (c *costs) create(client *http.Client, name string, annotation int) {
	c.do(client, http.MethodPost, onlyNewer, fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":%q,
		"annotations":{"example.com/text":%q}},"spec":{"deviceSelector":{"driver":"example.com"},
		"taint":{"key":"example.com/taint","value":"yes","effect":"NoSchedule"}}}`, name, bytes.Repeat([]byte("x"), annotation)))
}

// events creates n objects at the newer server, and returns the median of the times until the older
// one has passed on the event of each.
func (c *costs) events(n int) float64 {
	answer, err := c.older.Get(c.at[c.older] + onlyNewer + "?watch=true")
	must(c.T, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	next := func(name string) {
		for lines.Scan() {
			if bytes.Contains(lines.Bytes(), []byte(`"name":"`+name+`"`)) {
				return
			}
		}
		c.Fatalf("the watch has ended before the event of %s: %v", name, lines.Err())
	}
	next("one")
	return c.median(n, func(i int) {
		name := "seen-" + strconv.Itoa(i)
		c.create(c.newer, name, 0)
		next(name)
	})
}

// metric is a metric without labels of the older server.
func (c *costs) metric(name string) float64 {
	answer, err := c.older.Get(c.at[c.older] + "/metrics")
	must(c.T, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			must(c.T, err)
			return f
		}
	}
	c.Fatalf("no metric %s: %v", name, lines.Err())
	return 0
}
