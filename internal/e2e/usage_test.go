package e2e

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// sidecarProcess is a sidecar of the run, as seen from inside the sandbox.
type sidecarProcess struct {
	name, pid string
	metrics   *http.Client // of its admin listener, wherever that is
	url       string
}

// sidecarsOfRun returns the sidecars of the run's servers. Each serves its metrics on the loopback
// interface of its own host.
func sidecarsOfRun(t *testing.T) (all []sidecarProcess) {
	t.Helper()
	for _, p := range processesOf(t, insideRun())["proxy"] {
		if !slices.Contains(p.args, "--secure-port=6443") {
			continue // a test has started this sidecar
		}
		i := slices.IndexFunc(p.args, func(a string) bool { return strings.HasPrefix(a, "--access-log=") })
		name := p.args[i][strings.LastIndexByte(p.args[i], '/')+1:]
		all = append(all, sidecarProcess{
			name: strings.TrimSuffix(name, "-access.jsonl"), pid: p.pid, url: "http://127.0.0.1:6440/metrics",
			metrics: &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialerAt(p.pid)}},
		})
	}
	if len(all) == 0 {
		t.Fatalf("the run %s has no sidecar", insideRun())
	}
	return all
}

// dialerAt dials in the network namespace of a process.
func dialerAt(pid string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, so no other goroutine gets its namespace
			var there netns.NsHandle
			if there, err = netns.GetFromPath("/proc/" + pid + "/ns/net"); err != nil {
				return
			}
			defer func() { _ = there.Close() }()
			if err = netns.Set(there); err != nil {
				return
			}
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}()
		<-ended
		return conn, err
	}
}

// read returns metrics of the sidecar, by name.
func (s sidecarProcess) read(ctx context.Context, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.metrics.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the sidecar %s: %w", s.name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	found := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if slices.Contains(names, name) {
			if found[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("read the metrics of the sidecar %s: %w", s.name, err)
			}
		}
	}
	if err := lines.Err(); err != nil || len(found) < len(names) {
		return nil, fmt.Errorf("the sidecar %s shows %v of the metrics %v: %w", s.name, slices.Sorted(maps.Keys(found)), names, err)
	}
	return found, nil
}

// signal sends the sidecar a signal.
func (s sidecarProcess) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	pid, err := strconv.Atoi(s.pid)
	must(t, err)
	must(t, syscall.Kill(pid, signal))
}

// These measures grow if each stream or request leaks one.
var usageMetrics = []string{"go_goroutines", "process_open_fds"}

// settlesLike waits until the sidecar has about as many goroutines and open files as before. The
// sidecar may have a few more, because it keeps connections for later requests.
func (s sidecarProcess) settlesLike(t *testing.T, before map[string]float64) {
	t.Helper()
	const kept = 5
	var now map[string]float64
	defer func() { t.Logf("%s: %v, before %v", s.name, now, before) }()
	what := fmt.Sprintf("the sidecar %s has no more goroutines and files open than before (%v)", s.name, before)
	eventually(t, what, time.Minute, func() bool {
		var err error
		now, err = s.read(t.Context(), usageMetrics...)
		must(t, err)
		for name, n := range now {
			if n > before[name]+kept {
				return false
			}
		}
		return true
	})
}
