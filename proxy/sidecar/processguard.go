package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// processGuard keeps callers' requests from a new process of the local server until the header
// names have been compared with that process's. A process may have been started with other
// --requestheader flags than the one before, and may read an identity from a header that clients
// can send. The guard judges new connections only: an open connection leads to the process that it
// has always led to. A server that does not identify its process by a certificate counts as a new
// one when the probe has noticed it, up to a second later. It is safe for concurrent use.
type processGuard struct {
	process func(context.Context) (string, error) // the name of the present process
	get     func(ctx context.Context, path string) (*http.Response, error)
	names   *headerNames
	log     *slog.Logger

	mu     sync.Mutex
	began  time.Time // when the last check began
	last   error     // its result
	passed *string   // the process that was last admitted; nil: none
	logged bool      // that the present process is not admitted yet
}

// guardTimeout bounds one check.
const guardTimeout = 10 * time.Second

// errNamesChanged is for requests whose headers were cleaned by other names than are published now.
var errNamesChanged = unknownNames()

func unknownNames() *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable("the proxy does not know yet by which headers the local kube-apiserver reads identities")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1} // safe: the request was not carried out
	return err
}

// admit returns an error unless two things are true: connections that were dialled before lead to a
// process whose header names have been compared, and these names are the published ones.
// Connections that are dialled at the same time share one check, which began after they were
// dialled.
func (g *processGuard) admit(ctx context.Context, names *identityNames) error {
	if err := g.checkedSince(ctx, time.Now()); err != nil {
		return err
	}
	if names != g.names.published.Load() { // the check may have found new ones
		return errNamesChanged
	}
	return nil
}

func (g *processGuard) checkedSince(ctx context.Context, since time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.began.After(since) {
		return g.last
	}
	g.began = time.Now()
	// This does not end with the caller's context, because other connections wait for the result.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardTimeout)
	defer cancel()
	g.last = g.check(ctx)
	return g.last
}

func (g *processGuard) check(ctx context.Context) error {
	process, err := g.process(ctx)
	if err != nil {
		return err
	}
	if g.passed != nil && process == *g.passed {
		return nil
	}
	if err := g.compare(ctx); err != nil {
		if !g.logged {
			g.logged = true
			g.log.Warn(
				"requests are answered with 503 until it is known by which headers the new process of the local kube-apiserver reads identities",
				"error", err)
		}
		return unknownNames()
	}
	g.passed, g.logged = &process, false
	return nil
}

// compare compares the names with those of the present process. The process publishes its flags
// soon after it has become ready.
func (g *processGuard) compare(ctx context.Context) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.published(ctx); err != nil {
		return err
	}
	return g.names.read(ctx)
}

func (g *processGuard) ready(ctx context.Context) error {
	answer, err := g.get(ctx, readyzPath)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBuffered)) // so that the connection can be used again
	if answer.StatusCode != http.StatusOK {
		return unreadyError(answer.Status)
	}
	return nil
}

// publishes and fails are metrics of the controller that publishes a kube-apiserver's
// --requestheader flags (pkg/controlplane/controller/clusterauthenticationtrust; checked: v1.35 to
// v1.37). publishes counts its runs. fails counts the runs that failed, for example because an
// admission webhook denied the change; such a run counts there before it counts in publishes.
var (
	publishes = []byte(`workqueue_work_duration_seconds_count{name="cluster_authentication_trust_controller"} `)
	fails     = []byte(`workqueue_retries_total{name="cluster_authentication_trust_controller"} `)
)

// published returns an error if the process has not published its flags yet. A server without this
// metric counts as having published them. It reads megabytes.
func (g *processGuard) published(ctx context.Context) error {
	answer, err := g.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500 {
		return fmt.Errorf("read the metrics of the local kube-apiserver: %s", answer.Status)
	}
	runs, failed, known := 0.0, 0.0, false
	lines := bufio.NewScanner(io.LimitReader(answer.Body, maxMetrics))
	lines.Buffer(nil, maxMetrics)
	for lines.Scan() { // read to the end, so that the connection can be reused
		if count, ok := bytes.CutPrefix(lines.Bytes(), publishes); ok {
			runs, known = metricValue(count), true
		} else if count, ok := bytes.CutPrefix(lines.Bytes(), fails); ok {
			failed = metricValue(count)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the metrics of the local kube-apiserver: %w", err)
	}
	if known && runs <= failed {
		return errors.New("the local kube-apiserver has not published its --requestheader flags yet")
	}
	return nil
}

// metricValue is the value of a metric; 0 if it is no number.
func metricValue(text []byte) float64 {
	value, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
	if err != nil {
		return 0
	}
	return value
}
