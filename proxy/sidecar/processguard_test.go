package sidecar

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// The local server is restarted with further headers of identity. None of its clients' requests may
// reach the new process before the names have been compared with its own, which it publishes only
// some time after it has begun to serve.
func TestNewProcessWithOtherHeadersMakesNobodyRoot(t *testing.T) {
	a, r := one(t)
	nobody := r.client(nil, true)
	if got := r.get(nobody, common, asRoot...); got.code != http.StatusOK {
		t.Fatalf("before the restart: %d %s", got.code, got.body)
	}
	ran := func(times int) string {
		return fmt.Sprintf("workqueue_work_duration_seconds_count{name=\"cluster_authentication_trust_controller\"} %d\n", times)
	}
	for _, stage := range []struct {
		name   string
		change func()
		code   int
	}{
		{"it has begun to serve", func() { a.unready, a.headers, a.publishes, a.metrics = true, forwarding, standardNames, ran(0) }, http.StatusServiceUnavailable},
		{"it is ready, and has not published its flags", func() { a.unready = false }, http.StatusServiceUnavailable},
		{"it has published its flags", func() { a.publishes, a.metrics = nil, ran(1) }, http.StatusOK},
	} {
		a.set(stage.change)
		if stage.code == http.StatusServiceUnavailable {
			a.restart() // repeated, because the sidecar must forget no connection that it has
		}
		// When the new names are known, the request that had to wait is answered 503: its headers
		// were cleaned by the old ones.
		await(t, stage.name, func() bool { return r.get(nobody, common, asRoot...).code == stage.code })
		for range 20 {
			got := r.get(nobody, common, asRoot...)
			if got.code != stage.code || got.code == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
				t.Fatalf("%s: %d %s, want %d", stage.name, got.code, got.body, stage.code)
			}
		}
	}
	for _, name := range a.identities(common) {
		if name != user.Anonymous {
			t.Errorf("a request was served as %q", name)
		}
	}
}

// A new process with the same flags serves at once: the sidecar compares while the first request
// waits. The old process also broke off the sidecar's fetch of the local discovery. So a request
// may meet a sidecar that does not know what its server serves, which does not concern identity.
func TestNewProcessWithTheSameHeadersServesAtOnce(t *testing.T) {
	a, r := one(t)
	alice := r.user("alice")
	for range 3 {
		a.restart()
		await(t, "the new process serves", func() bool {
			got := r.get(alice, common)
			if strings.Contains(got.body, unknownNames().Error()) {
				t.Fatalf("%d %s", got.code, got.body)
			}
			return got.code == http.StatusOK
		})
	}
}
