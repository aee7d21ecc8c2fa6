package sidecar

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/skewproof/skewproof/proxy/peers"
)

func TestCertificatesAndAuthoritiesAreReloaded(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	served := func(r *running) string {
		conn := r.dialBy(r.front, "http/1.1")
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(p.atA); got != "kube-apiserver" {
		t.Fatalf("served %s", got)
	}
	// A certificate whose key is not written yet is not used.
	renewed := p.ca.issue(subject{name: "renewed", dns: []string{peerServerName}})
	writeFile(t, p.dir, "serving-a.crt", renewed.cert)
	if got := p.atA.get(p.user("alice"), common); got.code != http.StatusOK {
		t.Errorf("between certificate and key: %d", got.code)
	}
	writeFile(t, p.dir, "serving-a.key", renewed.key)
	await(t, "the new certificate is served", func() bool { return served(p.atA) == "renewed" })

	// A client of a new authority gets 401 until that authority is in the file.
	newCA := newAuthority(t, "new cluster")
	cert := newCA.issue(subject{name: "newcomer"})
	if got := p.atA.get(p.client(&cert, true), common); got.code != http.StatusUnauthorized {
		t.Errorf("before its authority is known: %d", got.code)
	}
	writeFile(t, p.dir, "ca-a.crt", append(append([]byte{}, p.ca.pem...), newCA.pem...))
	await(t, "the new authority is trusted", func() bool { return p.atA.get(p.client(&cert, true), common).code == http.StatusOK })
	if s, _ := p.a.last(common); s.user != "newcomer" {
		t.Errorf("the local server saw %q", s.user)
	}

	// The front proxies' authority is rotated. First, all servers trust both authorities. Then a
	// uses a new certificate.
	newFront := newAuthority(t, "new front-proxy")
	both := append(append([]byte{}, p.frontCA.pem...), newFront.pem...)
	p.a.set(func() { p.a.front = pool(p.frontCA, newFront) })
	client := newFront.issue(subject{name: "front-proxy-client"})
	asBob := func() int {
		return p.atB.get(p.client(&client, true), common, "X-Remote-User", "bob").code
	}
	if got := asBob(); got != http.StatusUnauthorized {
		t.Errorf("a front proxy of an unknown authority: %d", got)
	}
	writeFile(t, p.dir, "front-proxy-ca-b.crt", both)
	await(t, "the new front proxy is trusted", func() bool { return asBob() == http.StatusOK })
	client.write(t, p.dir, "front-proxy-client-a")
	p.a.set(func() { p.a.front = pool(newFront) }) // from now on, a's local server trusts only a's new certificate
	await(t, "a uses its new certificate", func() bool { return p.atA.get(p.user("alice"), common).code == http.StatusOK })
	if got := p.atA.get(p.user("alice"), "/apis/new.example/v2/novelties"); got.code != http.StatusOK {
		t.Errorf("to the peer with the new certificate: %d %s", got.code, got.body)
	}
}

// A front proxy is no longer trusted when its authority is removed, even on connections that are
// already open.
func TestFrontProxyLosesTrustOnOpenConnections(t *testing.T) {
	_, r := one(t)
	c := r.client(&r.proxies, true)
	if got := r.get(c, common, "X-Remote-User", "bob"); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.body)
	}
	other := newAuthority(t, "other front-proxy")
	writeFile(t, r.dir, "front-proxy-ca-a.crt", other.pem)
	await(t, "it is no longer trusted", func() bool { return r.get(c, common, "X-Remote-User", "bob").code == http.StatusUnauthorized })
}

func TestReadyzNeedsSidecarAndLocalServer(t *testing.T) {
	t.Parallel()
	a, r := one(t)
	alice := r.user("alice")
	if got := r.get(alice, "/readyz"); got.code != http.StatusOK || got.body != "ok" {
		t.Errorf("%d %q, want ok", got.code, got.body)
	}
	verbose := r.get(alice, "/readyz?verbose")
	want := "[+]proxy-shutdown ok\n[+]proxy-local-known ok\n[+]proxy-peers-synced ok\n[+]proxy-request-headers ok\n[+]proxy-anonymous-auth ok\n[+]proxy-local-credentials ok\n[+]ping ok\n[+]etcd ok\nreadyz check passed\n"
	if verbose.code != http.StatusOK || verbose.body != want {
		t.Errorf("verbose: %d %q, want %q", verbose.code, verbose.body, want)
	}
	a.set(func() { a.unready = true })
	if got := r.get(alice, "/readyz"); got.code != http.StatusInternalServerError || !strings.Contains(got.body, "[-]etcd failed") {
		t.Errorf("an unready local server: %d %q", got.code, got.body)
	}
	await(t, "the admin listener reports it", func() bool {
		got := r.onAdmin("/readyz")
		return got.code == http.StatusInternalServerError && strings.Contains(got.body, "[-]local-kube-apiserver failed")
	})
	if got := r.onAdmin("/readyz?exclude=local-kube-apiserver&verbose"); got.code != http.StatusOK || !strings.Contains(got.body, "local-kube-apiserver excluded: ok") {
		t.Errorf("excluded: %d %q", got.code, got.body)
	}
	if got := r.onAdmin("/livez"); got.code != http.StatusOK {
		t.Errorf("livez: %d %q", got.code, got.body)
	}
	a.vanish()
	await(t, "what the local server serves is no longer known", func() bool {
		got := r.get(alice, "/readyz")
		return got.code == http.StatusInternalServerError && strings.Contains(got.body, "[-]proxy-local-known failed: reason withheld\n") &&
			strings.Contains(got.body, "[-]local-readyz failed")
	})
}

func TestUnreachableLocalServerIsA503(t *testing.T) {
	a, r := one(t)
	alice := r.user("alice")
	a.vanish()
	got := r.get(alice, common)
	if got.code != http.StatusServiceUnavailable || got.status(t).Reason != "ServiceUnavailable" || strings.Contains(got.body, "127.0.0.1") || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s, Retry-After %q; want a 503 that names no address and may be tried again", got.code, got.body, got.header.Get("Retry-After"))
	}
}

func TestAdminListenerIsForLoopbackOnly(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for path, want := range map[string]string{
		"/metrics":                 `skewproof_proxy_peer_knowledge_age_seconds{peer="apiserver-b"}`,
		"/debug/peers":             `"id": "apiserver-b"`,
		"/debug/peers?format=text": "apiserver-b  true  v1.37.1",
	} {
		if got := p.atA.onAdmin(path); got.code != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s\nwant %s in it", path, got.code, got.body, want)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:6440", "10.0.0.1", ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.atA.admin+"/debug/peers", nil)
		if err != nil {
			t.Fatal(err)
		}
		if request.Host = host; host == "" {
			request.Host = "[::2]"
		}
		if got := do(t, http.DefaultClient, request); got.code != http.StatusForbidden {
			t.Errorf("asked for as %q: %d, want 403", request.Host, got.code)
		}
	}
	for client, code := range map[*http.Client]int{p.user("admin", "system:masters"): http.StatusOK, p.user("alice"): http.StatusForbidden, p.client(nil, true): http.StatusForbidden} {
		got := p.atA.get(client, "/debug/peers")
		if got.code != code || code != http.StatusOK && strings.Contains(got.body, "127.0.0.1") {
			t.Errorf("at the front door: %d %s, want %d", got.code, got.body, code)
		}
	}
	// /metrics at the front door is the local server's.
	if got := p.atA.get(p.user("admin", "system:masters"), "/metrics"); !strings.Contains(got.body, "process_start_time_seconds 1000.5") {
		t.Errorf("/metrics at the front door: %s", got.body)
	}
}

// The endpoint lease exists while the sidecar is ready, and has the name of the present process. It
// does not exist after the sidecar has stopped.
func TestEndpointLeaseFollowsTheServer(t *testing.T) {
	t.Parallel()
	a, r := one(t, func(_ *world, o *Options) { o.Peers = nil })
	name := peers.EndpointLeaseName("apiserver-a")
	holder := func() string {
		lease := a.lease(name)
		if lease == nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	await(t, "the lease is there", func() bool { return holder() != "" })
	if got := a.lease(name).Annotations[peers.AddressAnnotation]; got != "127.0.0.1:1" {
		t.Errorf("it advertises %s", got)
	}
	first := holder()
	a.restart()
	await(t, "the lease names the new process", func() bool { return holder() != first })
	r.awaitReady()
	// A broken connection alone is not a new process.
	second := holder()
	a.server.CloseClientConnections()
	await(t, "the new connections are there", func() bool { return r.onAdmin("/readyz").code == http.StatusOK })
	if got := holder(); got != second {
		t.Errorf("after a broken connection the holder is %s, was %s", got, second)
	}
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if a.lease(name) != nil {
		t.Error("the lease was left behind")
	}
}

func TestDrainFailsReadyzAndThenCutsWatches(t *testing.T) {
	t.Parallel()
	leaseName := peers.EndpointLeaseName("apiserver-a")
	delay := 2 * time.Second // on a busy machine, the requests below must be answered within this time
	a, r := one(t, func(_ *world, o *Options) {
		o.Peers, o.ShutdownDelayDuration, o.ShutdownTimeout = nil, delay, time.Minute
	})
	await(t, "the lease was written", func() bool { return a.lease(leaseName) != nil })
	alice := r.user("alice")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.front+common+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := alice.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	a.events <- "before"
	lines := bufio.NewReader(watch.Body)
	if got, err := lines.ReadString('\n'); got != "before\n" {
		t.Fatalf("%q, %v", got, err)
	}
	began := time.Now()
	r.stop()
	await(t, "readyz fails", func() bool { return strings.Contains(r.get(alice, "/readyz").body, "[-]proxy-shutdown failed") })
	if got := r.get(alice, common); got.code != http.StatusOK {
		t.Errorf("during the delay: %d %s", got.code, got.body)
	}
	// As long as this server serves, its peers must not answer 404 for the resources that only this
	// server serves.
	if a.lease(leaseName) == nil {
		t.Error("the endpoint lease is gone while everything is still served")
	}
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("it ended after %s, before the delay of %s was over", took, delay)
	}
	if l := a.lease(leaseName); l != nil {
		t.Errorf("the endpoint lease still exists: %+v", l)
	}
	// Only the watch was left. It is cut without the minute of waiting for short requests.
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("the watch continued")
	}
	if _, err := os.ReadFile(r.options.AccessLog); err != nil {
		t.Error(err)
	}
	if records := r.records(common); len(records) != 2 {
		t.Errorf("the access log has %+v, want the list and the watch", records)
	}
}

// During a long drain, peers must still find the resources that only this server serves.
func TestDrainRenewsTheEndpointLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOptions()
		o.ShutdownDelayDuration = time.Minute
		s := &sidecar{completed: &completed{Options: o}, probe: &probe{}}
		s.probe.ready.Store(true)
		client := fake.NewClientset()
		publisher := &peers.Publisher{
			Client: client, Server: "apiserver-a", Address: "192.0.2.1:6443", Incarnation: func() string { return "1" }, Ready: s.servesPeers,
		}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- publisher.Run(ctx) }()
		s.drain()
		lease, err := client.CoordinationV1().Leases(peers.Namespace).Get(t.Context(), peers.EndpointLeaseName("apiserver-a"), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if age, valid := time.Since(lease.Spec.RenewTime.Time), time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second; age >= valid {
			t.Errorf("at the end of the delay the lease, valid for %s, was renewed %s ago", valid, age)
		}
		leave()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRunLeavesNothingBehind(t *testing.T) {
	p := newPair(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.atA.front+"/apis/new.example/v2/novelties?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := p.user("alice").Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	if len(goroutines()) < 10 {
		t.Errorf("two sidecars at work are %d goroutines: this test does not see them", len(goroutines()))
	}
	for _, r := range []*running{p.atA, p.atB} {
		r.stop()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		for _, address := range []string{r.front, r.admin} {
			if conn, err := net.Dial("tcp", address); err == nil {
				conn.Close()
				t.Errorf("a process still listens on %s", address)
			}
		}
	}
	p.awaitNothingLeft()
}

// awaitNothingLeft waits until the stopped sidecars have no goroutines and no connections.
func (w *world) awaitNothingLeft() {
	t := w.t
	t.Helper()
	// Goroutines end shortly after their connections. The test's own connections may become idle at
	// any time.
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left:\n%s", strings.Join(left, "\n\n"))
		}
	}()
	await(t, "no goroutine is left", func() bool {
		for _, client := range w.transports {
			client.CloseIdleConnections()
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		left = goroutines()
		return len(left) == 0
	})
}

// goroutines returns the stacks of sidecars' goroutines and of client connections.
func goroutines() (found []string) {
	stacks := make([]byte, 4<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		for _, ours := range []string{
			"skewproof/proxy.", "proxy/peers.", "sidecar.(*transport)", "sidecar.(*probe)", "sidecar.(*frontDoor)", "sidecar.(*sidecar)",
			"tools/cache", "http.(*persistConn).readLoop", "http2ClientConn).readLoop", "http2clientConnReadLoop", "http2.(*ClientConn).readLoop",
		} {
			if strings.Contains(stack, ours) {
				found = append(found, stack)
				break
			}
		}
	}
	return found
}

func TestRunReturnsIfItCannotStart(t *testing.T) {
	w := newWorld(t)
	o := w.options("a", nil)
	o.Upstream = "http://127.0.0.1:1"
	o.Listener, o.AdminListener = listen(t), listen(t)
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--upstream") {
		t.Errorf("Run: %v, want an error about --upstream", err)
	}
	if _, err := o.Listener.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

func TestCrashOfThePolicyEndsRun(t *testing.T) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
	o := w.options("a", a)
	o.Policy = "upstream-1.34"
	o.Peers = []string{"apiserver-dead=127.0.0.1:1"}
	o.Listener, o.AdminListener = listen(t), listen(t)
	err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "would have crashed") {
		t.Errorf("Run: %v", err)
	}
}
