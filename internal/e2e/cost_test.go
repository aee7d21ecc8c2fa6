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

// costClusters is in how many clusters TestCost compares servers. 'make cost' asks for it.
var costClusters = flag.Int("cost", 0, "compare the cost of the reference with that of the builtin proxy, in so many clusters")

const costFile = "cost.json"

// TestCost measures what a request costs with the reference, relative to the proxy that
// kube-apiserver has. In each cluster, one older server has the reference and another one the
// builtin proxy. They are asked in turns, so what else the machine does slows down both. In every
// other cluster the servers change roles, and the newer server has the reference, too. The test
// prints the ratios. It asserts no time.
func TestCost(t *testing.T) {
	if isInside() {
		writeInside(t, costFile, newCosts(t))
		return
	}
	if *costClusters < 2 {
		t.Skip("a measurement, of minutes: 'make cost' runs it")
	}
	logs := map[string][]float64{}
	for i := range *costClusters {
		step, reference := "2", "c" // of reference-rollout, which replaces c first
		if i%2 == 1 {
			step, reference = "9", "b" // after c has got back the proxy of its release
		}
		held := beginScenario(t, "reference-rollout", nil, "The cluster stays up", "--subject", scenario.SubjectReference, "--keep", "--no-load", "--at", step)
		held.again(t, 10*time.Minute, "-reference", reference)
		held.end(t, syscall.SIGINT)
		content, err := os.ReadFile(filepath.Join(held.dir, costFile))
		must(t, err)
		var ratios map[string]float64
		must(t, json.Unmarshal(content, &ratios))
		for what, ratio := range ratios {
			logs[what] = append(logs[what], math.Log(ratio))
		}
	}
	fmt.Println("| what | reference / builtin | 95 % interval |\n|---|---|---|")
	for _, what := range slices.Sorted(maps.Keys(logs)) {
		mean, half := interval(logs[what])
		fmt.Printf("| %s | %.2f | %.2f to %.2f |\n", what, math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half))
	}
}

// writeInside writes what a test measured inside a cluster, for its half outside.
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

// costReference is the server with the reference, for the half of the test inside the sandbox.
var costReference = flag.String("reference", "", "for the half of TestCost inside a sandbox: b or c, the server that has the reference")

// costs is that half of the test. The older servers are b and, in a cluster of three, c.
type costs struct {
	*testing.T
	older []*http.Client
	newer *http.Client
	at    map[*http.Client]string
}

// newClients makes the clients, and waits until the older servers pass requests on.
func newClients(t *testing.T, older ...string) *costs {
	c := &costs{T: t, at: map[*http.Client]string{}}
	client := func(server string) *http.Client {
		config := insideConfig(t, server+"-direct")
		client, err := rest.HTTPClientFor(config)
		must(t, err)
		c.at[client] = config.Host
		return client
	}
	c.newer = client("a")
	for _, server := range older {
		of := client(server)
		c.older = append(c.older, of)
		eventually(t, server+" passes requests on", time.Minute, func() bool {
			answer, err := of.Get(c.at[of] + onlyNewer)
			if err != nil {
				return false
			}
			answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		})
	}
	return c
}

// newCosts measures, and returns ratios, of the reference by the builtin proxy.
func newCosts(t *testing.T) map[string]float64 {
	servers := []string{"b", "c"} // builtin, reference
	if *costReference == "b" {
		slices.Reverse(servers)
	}
	c := newClients(t, servers...)
	const cpu, memory = "process_cpu_seconds_total", "process_resident_memory_bytes"
	got := map[string]float64{"memory of an idle server": c.metric(c.older[1], memory) / c.metric(c.older[0], memory)}

	const local = "/api/v1/namespaces/default"
	for i := range 300 {
		c.create(c.newer, "small-"+strconv.Itoa(i), 0)
	}
	get := func(path string) func(*http.Client, int) {
		return func(of *http.Client, _ int) { c.do(of, http.MethodGet, path, "") }
	}
	for _, of := range c.older { // connections, caches
		c.median(of, 300, get(local))
		c.median(of, 50, get(onlyNewer+"/small-1"))
	}
	used := map[*http.Client]float64{}
	got["GET that is served locally"] = c.inTurns(12, func(of *http.Client) float64 {
		before := c.metric(of, cpu)
		median := c.median(of, 1000, get(local))
		used[of] += c.metric(of, cpu) - before
		return median
	})
	got["CPU time of a GET that is served locally"] = used[c.older[1]] / used[c.older[0]]
	got["GET that is passed on"] = c.inTurns(20, func(of *http.Client) float64 { return c.median(of, 100, get(onlyNewer+"/small-1")) })
	got["100 GETs that are passed on at once"] = c.inTurns(30, func(of *http.Client) float64 {
		return c.median(of, 1, func(of *http.Client, _ int) {
			var together sync.WaitGroup
			for range 100 {
				together.Go(func() { c.do(of, http.MethodGet, onlyNewer+"/small-1", "") })
			}
			together.Wait()
		})
	})
	made := 0
	got["create that is passed on"] = c.inTurns(20, func(of *http.Client) float64 {
		return c.median(of, 20, func(of *http.Client, _ int) {
			made++
			c.create(of, "made-"+strconv.Itoa(made), 0)
		})
	})
	got["watch event that is passed on"] = c.inTurns(30, func(of *http.Client) float64 { return c.median(of, 1, c.events) })
	for i := range 40 {
		c.create(c.newer, "big-"+strconv.Itoa(i), 128<<10)
	}
	got["list of 5 MB that is passed on"] = c.inTurns(20, func(of *http.Client) float64 { return c.median(of, 1, get(onlyNewer)) })
	return got
}

// inTurns measures the servers in turns, and returns the mean ratio of the reference by the builtin
// proxy. Every other turn begins with the other server.
func (c *costs) inTurns(turns int, measure func(of *http.Client) float64) float64 {
	var logs []float64
	for turn := range turns {
		var took [2]float64
		for i := range took {
			which := (i + turn) % len(took)
			took[which] = measure(c.older[which])
		}
		logs = append(logs, math.Log(took[1]/took[0]))
	}
	slices.Sort(logs)
	quarter := turns / 4 // the slowest and the fastest turns show what else the machine did
	mean, _ := interval(logs[quarter : turns-quarter])
	return math.Exp(mean)
}

// median does something n times, and returns the median of the times in seconds.
func (c *costs) median(of *http.Client, n int, do func(of *http.Client, i int)) float64 {
	var all []float64
	for i := range n {
		began := time.Now()
		do(of, i)
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

// events reads the first 300 events of a watch: an event for each object.
func (c *costs) events(of *http.Client, _ int) {
	answer, err := of.Get(c.at[of] + onlyNewer + "?watch=true")
	must(c.T, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for range 300 {
		if !lines.Scan() {
			c.Fatalf("the watch has ended early: %v", lines.Err())
		}
	}
}

// metric is a metric without labels of a server.
func (c *costs) metric(of *http.Client, name string) float64 {
	answer, err := of.Get(c.at[of] + "/metrics")
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
