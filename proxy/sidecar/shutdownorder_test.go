package sidecar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy/peers"
)

// After the drain, the listener is closed first. Then short requests in flight are carried out,
// even if they end long after the drain. Then streams are cut. Last, the lease with which peers
// find this server is deleted.
func TestOrderOfAShutdown(t *testing.T) {
	t.Parallel()
	leaseName := peers.EndpointLeaseName("apiserver-a")
	a, r := one(t, func(_ *world, o *Options) {
		o.Peers, o.ShutdownDelayDuration, o.ShutdownTimeout = nil, 50*time.Millisecond, time.Minute
	})
	arrived, release := make(chan struct{}), make(chan struct{})
	usual := a.filtered(http.HandlerFunc(a.serve), 0)
	a.set(func() {
		a.filters = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("fieldSelector") { // the request that waits
				close(arrived)
				<-release
			}
			usual.ServeHTTP(w, r)
		})
	})
	await(t, "the lease was written", func() bool { return a.lease(leaseName) != nil })
	alice := r.user("alice")
	send := func(query string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+r.front+common+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		return alice.Do(request)
	}
	watch, err := send("?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	lines := bufio.NewReader(watch.Body)
	event := func(said string) error {
		select {
		case a.events <- said:
		case <-time.After(20 * time.Second):
			return errors.New("nobody watches")
		}
		got, err := lines.ReadString('\n')
		if err == nil && got != said+"\n" {
			t.Errorf("the watch says %q, want %q", got, said)
		}
		return err
	}
	if err := event("before"); err != nil {
		t.Fatal(err)
	}
	type result struct {
		code int
		body string
		err  error
	}
	held := make(chan result, 1)
	go func() {
		answer, err := send("?fieldSelector=metadata.name=x")
		if err != nil {
			held <- result{err: err}
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		held <- result{answer.StatusCode, string(body), err}
	}()
	<-arrived
	r.stop()
	await(t, "the door is closed", func() bool {
		conn, err := net.Dial("tcp", r.front)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	// The drain is over, but the short request is still in flight.
	if err := event("during"); err != nil {
		t.Errorf("the watch was cut while a short request was under way: %v", err)
	}
	if a.lease(leaseName) == nil {
		t.Error("the endpoint lease is gone while a request is under way")
	}
	select {
	case err := <-r.ended:
		t.Fatalf("Run has ended while a request was under way: %v", err)
	case got := <-held:
		t.Fatalf("the short request was cut: %+v", got)
	default:
	}
	close(release)
	if got := <-held; got.err != nil || got.code != http.StatusOK || got.body == "" {
		t.Errorf("the short request that outlived the drain: %+v", got)
	}
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("the watch continued after the last short request")
	}
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if a.lease(leaseName) != nil {
		t.Error("the endpoint lease still exists")
	}
}

// A short request that never ends delays a shutdown by the timeout at most.
func TestShutdownTimeoutEndsShortRequests(t *testing.T) {
	t.Parallel()
	a, r := one(t, func(_ *world, o *Options) {
		o.Peers, o.ShutdownDelayDuration, o.ShutdownTimeout = nil, 0, 50*time.Millisecond
	})
	arrived := make(chan struct{})
	usual := a.filtered(http.HandlerFunc(a.serve), 0)
	a.set(func() {
		a.filters = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("fieldSelector") {
				close(arrived)
				<-r.Context().Done()
				return
			}
			usual.ServeHTTP(w, r)
		})
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.front+common+"?fieldSelector=metadata.name=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	alice := r.user("alice")
	ended := make(chan error, 1)
	go func() {
		answer, err := alice.Do(request)
		if err == nil {
			defer answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				_, err = io.ReadAll(answer.Body)
			}
		}
		ended <- err
	}()
	<-arrived
	r.stop()
	<-ended
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
