package sidecar

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/connections"
	"github.com/skewproof/skewproof/proxy/peers"
)

// localDial bounds dialling the local kube-apiserver: it is near, but may be short of time.
const localDial = 10 * time.Second

// sidecar is everything that runs, put together. Nothing of it has begun.
type sidecar struct {
	*completed
	log       *slog.Logger
	store     *proxy.Store
	access    *accessObserver
	probe     *probe
	sources   *peers.Sources
	publisher *peers.Publisher // nil where peers are given by flags
	serverTLS *serverTLS
	toPeers   *transport
	toLocal   *transport
	toProbe   *transport
	toAPI     connections.Set // by --kubeconfig; otherwise that is a matter of toLocal
	accessLog *accessLog
	clients   *clients
	tracing   tracing.TracerProvider // nil if somebody else's is used
	front     *frontDoor
	admin     *http.Server

	draining atomic.Bool
}

// assemble puts a sidecar together. What it opens, close closes.
func assemble(ctx context.Context, c *completed) (*sidecar, error) {
	s := &sidecar{
		completed: c,
		log:       cmp.Or(c.Logger, slog.New(slog.DiscardHandler)),
		store:     proxy.NewStore(c.policy, c.server),
		access:    newAccessObserver(),
	}
	for _, w := range c.warnings {
		s.log.Warn(w)
	}
	s.transports()
	if err := s.assemble(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sidecar) transports() {
	c := s.credentials
	localTLS := func() *tls.Config { return c.upstreamTLS(cmp.Or(s.UpstreamServerName, s.upstream.Hostname())) }
	s.toPeers = newTransport(s.policy.Routing.DialTimeout, silence, c.peerTLS)
	s.toLocal = newTransport(localDial, 0, localTLS)
	s.toProbe = newTransport(localDial, 0, localTLS)
	s.serverTLS = newServerTLS(c)
	c.changed = []func(){s.toPeers.renew, s.toLocal.renew, s.toProbe.renew, s.serverTLS.renew}
}

func (s *sidecar) assemble(ctx context.Context) error {
	var err error
	if s.accessLog, err = openAccessLog(s.AccessLog, func(err error) { s.log.Error(err.Error()) }); err != nil {
		return err
	}
	tracer := s.TracerProvider
	if tracer == nil && s.TracingEndpoint != "" {
		if s.tracing, err = newTracing(ctx, s.completed); err != nil {
			return err
		}
		tracer = s.tracing
	}
	registry := cmp.Or(s.Registry, prometheus.NewRegistry())
	proxyMetrics, peerMetrics := proxy.NewMetrics(), peers.NewMetrics(s.store)
	for _, collector := range []prometheus.Collector{proxyMetrics, peerMetrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	names := s.identityNames()
	written := proxy.IdentityHeaders{User: names.user[0], Group: names.group[0], ExtraPrefix: names.extra[0]}
	if len(names.uid) > 0 {
		written.UID = names.uid[0]
	}
	local := newLocal(s.upstream, s.toLocal, names, s.log)
	handler, err := proxy.New(proxy.Config{
		Store:           s.store,
		Local:           local,
		Transport:       s.toPeers, // sends upgrades by HTTP/1.1 on its own
		FromPeer:        fromPeer,
		IdentityHeaders: written,
		Observer:        proxy.Observers{s.access, proxyMetrics},
		TracerProvider:  tracer,
		Logger:          s.log,
	})
	if err != nil {
		return err
	}
	if s.clients, err = s.newClients(names); err != nil {
		return err
	}
	if err := s.knowledge(s.clients, written, peerMetrics, proxyMetrics.Fetched, names); err != nil {
		return err
	}
	tokens := (&tokenReviews{reviews: s.clients.typed.AuthenticationV1().TokenReviews(), log: s.log}).cached(s.TokenCacheTTL)
	debug := &debugPeers{report: s.report}
	own := s.checks()
	permitted := &discoveryAuthorizer{local: local, proxy: handler, merges: s.policy.Discovery.Merge, trustsAnyHop: s.policy.Quirks.TrustAnyHop}
	served := newAuthentication(s.Options, s.credentials, tokens, atFront(permitted, own, local, debug), s.log)
	s.front = newFrontDoor(newAccess(string(s.server), s.accessLog, s.access, served), s.serverTLS.config, s.log)
	withLocal := append(own, check{"local-kube-apiserver", func() error { return unless(s.probe.Ready(), "it is not ready") }})
	s.admin = newAdminServer(newAdmin(registry, withLocal, debug))
	return nil
}

// knowledge makes the sources of what is known, and the publisher of what others are to know.
func (s *sidecar) knowledge(clients *clients, written proxy.IdentityHeaders, metrics *peers.Metrics, fetched func(int), names identityNames) error {
	config := peers.Config{
		Store: s.store, Dynamic: clients.dynamic, Static: s.static, Address: s.advertised,
		PeerTransport: s.toPeers, LocalTransport: s.toLocal, LocalURL: s.upstream, Identity: written,
		Metrics: metrics, FetchAnswered: fetched, Logger: s.log,
	}
	if len(s.static) == 0 {
		config.Client = clients.typed
	}
	var err error
	if s.sources, err = peers.New(config); err != nil {
		return err
	}
	s.probe = &probe{
		upstream: s.upstream, server: string(s.server), log: s.log,
		client: &http.Client{Transport: asSelf{http1{s.toProbe}, names}},
		changed: func() {
			// The new process may be of another version.
			s.store.Observe(proxy.LocalLost{At: time.Now()})
			s.sources.RefreshLocal()
		},
	}
	s.probe.process = processOf{s.upstream, s.probe.get}.name
	if len(s.static) == 0 {
		s.publisher = &peers.Publisher{
			Client: clients.typed, Server: s.server, Address: s.advertised,
			Incarnation: s.probe.Incarnation, Ready: s.servesPeers, Logger: s.log,
		}
		if s.policy.Fetching.WhenTold {
			s.publisher.Serves = peers.Digester(s.store)
		}
	}
	return nil
}

// servesPeers reports whether a request of a peer would be served now. It would be while clients are being sent elsewhere: see drain.
func (s *sidecar) servesPeers() bool {
	return s.probe.Ready() && s.localKnown()
}

func (s *sidecar) localKnown() bool {
	// A policy that never asks the local server what it serves does not wait for the answer.
	return s.policy.Fetching.LocalInterval <= 0 || s.store.Table().LocalKnown()
}

// checks are what the sidecar itself needs to be ready.
func (s *sidecar) checks() checks {
	own := checks{
		{"proxy-shutdown", func() error { return unless(!s.draining.Load(), "the proxy is shutting down") }},
		{"proxy-local-known", func() error { return unless(s.localKnown(), "it is not known what the local kube-apiserver serves") }},
		{"proxy-peers-synced", func() error {
			return unless(s.store.Table().Synced(), "not every source of knowledge about peers has delivered yet")
		}},
	}
	if s.publisher != nil {
		own = append(own, check{"proxy-endpoint-lease", func() error {
			return unless(s.publisher.Published(), "its endpoint lease has not been written yet, so no peer can learn what is served here")
		}})
	}
	return own
}

func unless(well bool, trouble string) error {
	if well {
		return nil
	}
	return fmt.Errorf("%s", trouble)
}

func (s *sidecar) report() PeersReport {
	now, table := time.Now(), s.store.Table()
	return PeersReport{
		Server: string(s.server), Incarnation: s.probe.Incarnation(), Policy: s.policy.Name, Advertised: s.advertised, At: now,
		Synced: table.Synced(), LocalKnown: table.LocalKnown(), LocalReady: s.probe.Ready(),
		Peers: peerReports(table, s.access.inFlight, now),
	}
}

// clients are how the sidecar itself uses the API of the local server.
type clients struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

func (s *sidecar) newClients(names identityNames) (*clients, error) {
	config := &rest.Config{Host: s.upstream.String(), Transport: asSelf{s.toLocal, names}}
	if s.Kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
			return nil, fmt.Errorf("read --kubeconfig %s: %w", s.Kubeconfig, err)
		}
		config.Dial = s.toAPI.Dialer(&net.Dialer{Timeout: localDial})
	}
	config.UserAgent = "skewproof-proxy"
	config.QPS = -1 // token reviews come as fast as callers do; the local server has limits of its own
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the local kube-apiserver: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the local kube-apiserver: %w", err)
	}
	return &clients{typed, untyped}, nil
}

// asSelf sends requests as the sidecar itself.
type asSelf struct {
	http.RoundTripper
	names identityNames
}

func (a asSelf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	a.names.set(r, selfUser)
	return a.RoundTripper.RoundTrip(r)
}

func (a asSelf) CloseIdleConnections() {
	if t, ok := a.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// newTracing sends spans to --tracing-endpoint, as a kube-apiserver does to the endpoint of its --tracing-config-file.
func newTracing(ctx context.Context, c *completed) (tracing.TracerProvider, error) {
	rate := int32(c.TracingRatePerMillion)
	provider, err := tracing.NewProvider(ctx, &tracingapi.TracingConfiguration{Endpoint: &c.TracingEndpoint, SamplingRatePerMillion: &rate}, nil,
		[]resource.Option{resource.WithAttributes(attribute.String("service.name", "skewproof-proxy"), attribute.String("service.instance.id", string(c.server)))})
	if err != nil {
		return nil, fmt.Errorf("set up tracing to %s: %w", c.TracingEndpoint, err)
	}
	return provider, nil
}
