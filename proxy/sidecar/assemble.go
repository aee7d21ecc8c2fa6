package sidecar

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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

// localDial bounds dialling the local kube-apiserver. The server is near, but it may be short of
// CPU.
const localDial = 10 * time.Second

// sidecar has all parts of a sidecar. [assemble] makes it, run starts them, close releases them.
type sidecar struct {
	*completed
	log        *slog.Logger
	store      *proxy.Store
	access     *accessObserver
	probe      *probe
	own        *ownCredentials
	flags      *localFlags
	headers    *headerNames
	callers    *identities
	authorized *authorization
	sources    *peers.Sources
	publisher  *peers.Publisher // nil if the peers are given by --peer
	serverTLS  *serverTLS
	toPeers    *transport
	toLocal    *transport      // for callers' requests; see processGuard
	plain      *transport      // to the local server, without a client certificate
	forSelf    *transport      // to the local server, for the sidecar's own requests
	toAPI      connections.Set // only with --kubeconfig: otherwise the clients use forSelf
	accessLog  *accessLog
	typed      kubernetes.Interface // how the sidecar itself uses the API of the local server
	untyped    dynamic.Interface
	tracing    tracing.TracerProvider // nil if Options has one, or there is none
	front      *frontDoor
	admin      *http.Server

	draining atomic.Bool
}

// assemble makes a sidecar but starts nothing. The caller must close it.
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
	peerTLS := func() *tls.Config { return c.clientTLS(c.peerCA, peerServerName) }
	localTLS := func() *tls.Config {
		return c.clientTLS(c.upstreamCA, cmp.Or(s.UpstreamServerName, s.upstream.Hostname()))
	}
	plainTLS := func() *tls.Config {
		return c.anyoneTLS(c.upstreamCA, cmp.Or(s.UpstreamServerName, s.upstream.Hostname()))
	}
	s.plain = newTransport(localDial, 0, plainTLS)
	s.toPeers = newTransport(s.policy.Routing.DialTimeout, silence, peerTLS)
	s.toLocal = newTransport(localDial, 0, localTLS)
	s.forSelf = newTransport(localDial, 0, localTLS)
	s.serverTLS = newServerTLS(s.completed)
	c.changed = []func(){s.toPeers.renew, s.toLocal.renew, s.plain.renew, s.forSelf.renew, s.serverTLS.renew}
}

// aggregated reports whether an aggregated API server answers requests at a path.
func (s *sidecar) aggregated(path string) bool {
	gv, ok := groupVersionOf(path)
	return ok && s.store.Table().Aggregates(gv)
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
	for _, collector := range []prometheus.Collector{proxyMetrics, peerMetrics, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	names := s.identityNames()
	written := proxy.IdentityHeaders{User: names.user[0], Group: names.group[0], ExtraPrefix: names.extra[0]}
	if len(names.uid) > 0 {
		written.UID = names.uid[0]
	}
	if err := s.clients(names); err != nil {
		return err
	}
	for _, collector := range []prometheus.Collector{s.own.refused, s.flags.differ} {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
	}
	local := newLocal(s.upstream, asCaller{asserted{s.toLocal, s.own}, s.plain}, s.headers, s.log)
	local.aggregated = s.aggregated
	handler, err := proxy.New(proxy.Config{
		Store:     s.store,
		Local:     namesProxy{local, s.public},
		Transport: plantedTransport(withoutLater{s.toPeers, s.headers}),
		FromPeer:  fromPeer,
		Identify:  identify,
		Authorize: s.authorized.authorize,
		Document: func(ctx context.Context, p proxy.PeerView, path string) ([]byte, string, error) {
			return s.sources.Document(ctx, p, path) // made below, before anything is served
		},
		IdentityHeaders: written,
		Observer:        proxy.Observers{s.access, plantedMetrics(proxyMetrics)},
		TracerProvider:  tracer,
		Logger:          s.log,
	})
	if err != nil {
		return err
	}
	if err := s.knowledge(written, peerMetrics, proxyMetrics.Fetched, names); err != nil {
		return err
	}
	debug, metrics := debugPeers(s.report), promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	own := s.checks()
	permitted := &discoveryAuthorizer{local: local, proxy: plantedHandler(handler), merges: s.policy.Discovery.Merge,
		trustsAnyHop: s.policy.Quirks.TrustAnyHop}
	served := newAuthentication(s.Options, s.credentials, s.headers, s.callers, anonymousAsLocal(s.flags,
		withGoaway(s.GoawayChance, atFront(permitted, own, local, s.authorized.before(debug), s.authorized.before(metrics)))), s.log)
	s.front = newFrontDoor(&access{string(s.server), s.accessLog, s.access, afterComparison(s.headers, served)}, s.frontLimits(),
		s.serverTLS.configFor, s.log)
	withLocal := append(own, check{"local-kube-apiserver", s.probe.Ready, "it is not ready"})
	s.admin = newAdminServer(withLocal, debug, metrics)
	return nil
}

// knowledge makes the sources of knowledge about servers, and the publisher of this server's lease.
func (s *sidecar) knowledge(written proxy.IdentityHeaders, metrics *peers.Metrics, fetched func(int), names *identityNames) error {
	config := peers.Config{
		Store: s.store, Dynamic: s.untyped, Static: s.static, Direct: s.direct, Address: s.advertised,
		PeerTransport: s.toPeers, LocalTransport: s.forSelf, LocalURL: s.upstream, Identity: written,
		Metrics: metrics, FetchAnswered: fetched, Logger: s.log,
	}
	if len(s.static) == 0 {
		config.Client = s.typed
	}
	if s.FindDirectPeers {
		config.Identify = s.credentials.identify
	}
	var err error
	if s.sources, err = peers.New(config); err != nil {
		return err
	}
	s.probe = &probe{
		upstream: s.upstream, server: string(s.server), log: s.log,
		client: &http.Client{Transport: asSelf{http1{s.forSelf}, names}},
		changed: func() {
			s.store.Observe(proxy.LocalLost{At: time.Now()}) // the new process may be of another version
			s.own.suspect()
			s.flags.suspect()
			s.sources.RefreshLocal()
		},
	}
	of := processOf{s.upstream, s.probe.get}
	s.probe.process = of.name
	present := func(ctx context.Context) (string, error) {
		name, err := of.loopbackCertificate(ctx)
		if errors.Is(err, errNotIdentified) { // to find out otherwise takes too long for each connection
			return s.probe.Incarnation(), nil
		}
		return name, err
	}
	s.toLocal.admit = (&processGuard{process: present, get: s.probe.get, names: s.headers, log: s.log}).admit
	s.headers.changed = s.toLocal.use
	if len(s.static) == 0 {
		s.publisher = &peers.Publisher{
			Client: s.typed, Server: s.server, Address: s.advertised,
			Incarnation: s.probe.Incarnation, Ready: s.servesPeers, Logger: s.log,
		}
		if s.policy.Fetching.WhenTold {
			s.publisher.Serves = peers.Digester(s.store)
		}
	}
	return nil
}

// servesPeers reports whether the sidecar would serve a request of a peer now. It returns true
// during the drain too.
func (s *sidecar) servesPeers() bool { return s.probe.Ready() && s.localKnown() }

func (s *sidecar) localKnown() bool {
	// A policy that never asks the local server what it serves does not wait for the answer.
	return s.policy.Fetching.LocalInterval <= 0 || s.store.Table().LocalKnown()
}

func (s *sidecar) checks() checks {
	own := checks{
		{"proxy-shutdown", func() bool { return !s.draining.Load() }, "the proxy is shutting down"},
		{"proxy-local-known", s.localKnown, "it is not known what the local kube-apiserver serves"},
		{
			"proxy-peers-synced", func() bool { return s.store.Table().Synced() },
			"not every source of knowledge about peers has delivered its first list yet",
		},
		{"proxy-request-headers", s.headers.compared, "it is not known yet by which headers the local kube-apiserver reads identities"},
		{"proxy-anonymous-auth", s.flags.known, "it is not known yet whether the local kube-apiserver accepts anonymous requests"},
		{"proxy-local-credentials", func() bool { return !s.own.lost() }, errOwnCredentials.Error()},
	}
	if s.publisher != nil {
		own = append(own, check{
			"proxy-endpoint-lease", s.publisher.Published,
			"the endpoint lease has not been written yet, so no peer can learn what this server serves",
		})
	}
	return own
}

func (s *sidecar) report() PeersReport {
	now, table := time.Now(), s.store.Table()
	return PeersReport{
		Server: string(s.server), Incarnation: s.probe.Incarnation(), Policy: s.policy.Name, Advertised: s.advertised, At: now,
		Synced: table.Synced(), LocalKnown: table.LocalKnown(), LocalReady: s.probe.Ready(),
		Mismatches: s.flags.trouble(),
		Peers:      peerReports(table, s.access.inFlight, now),
	}
}

// clients makes the clients with which the sidecar itself uses the API of the local server.
func (s *sidecar) clients(names *identityNames) (err error) {
	config := &rest.Config{Host: s.upstream.String(), Transport: asSelf{s.forSelf, names}, QPS: -1, UserAgent: userAgent}
	asserting, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the local kube-apiserver: %w", err)
	}
	s.headers = &headerNames{own: names, client: asserting, log: s.log}
	s.own = newOwnCredentials(asserting.AuthenticationV1().SelfSubjectReviews(), s.log)
	s.flags = newLocalFlags(s.Options, s.upstream, http1{s.plain}, asSelf{http1{s.forSelf}, names}, s.log)
	if s.Kubeconfig != "" {
		if config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
			return fmt.Errorf("read --kubeconfig %s: %w", s.Kubeconfig, err)
		}
		config.Dial = s.toAPI.Dialer(&net.Dialer{Timeout: localDial})
	}
	config.UserAgent = userAgent
	config.QPS = -1 // the local server limits requests itself
	if s.typed, err = kubernetes.NewForConfig(config); err == nil {
		s.untyped, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		return fmt.Errorf("make a client of the local kube-apiserver: %w", err)
	}
	whoever, err := kubernetes.NewForConfig(
		&rest.Config{Host: s.upstream.String(), Transport: asWhoever{s.plain}, QPS: -1, UserAgent: userAgent})
	if err != nil {
		return fmt.Errorf("make a client of the local kube-apiserver: %w", err)
	}
	s.callers = newIdentities(whoever.AuthenticationV1().SelfSubjectReviews(), s.typed.AuthenticationV1().TokenReviews(),
		s.TokenCacheTTL, s.log)
	s.authorized, err = newAuthorization(s.typed.AuthorizationV1())
	return err
}

// userAgent is the User-Agent of requests that the sidecar makes for itself.
const userAgent = "skewproof-proxy"

// asSelf sends requests with the sidecar's own identity.
type asSelf struct {
	idleCloser
	names *identityNames
}

// idleCloser is a transport whose idle connections [http.Client.CloseIdleConnections] can close.
type idleCloser interface {
	http.RoundTripper
	CloseIdleConnections()
}

func (a asSelf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	a.names.set(r, selfUser)
	return a.idleCloser.RoundTrip(r)
}

// newTracing makes a provider that sends spans to --tracing-endpoint. A kube-apiserver does the
// same with the endpoint in its --tracing-config-file.
func newTracing(ctx context.Context, c *completed) (tracing.TracerProvider, error) {
	rate := int32(c.TracingRatePerMillion)
	provider, err := tracing.NewProvider(ctx,
		&tracingapi.TracingConfiguration{Endpoint: &c.TracingEndpoint, SamplingRatePerMillion: &rate}, nil,
		[]resource.Option{resource.WithAttributes(attribute.String("service.name", "skewproof-proxy"),
			attribute.String("service.instance.id", string(c.server)))})
	if err != nil {
		return nil, fmt.Errorf("set up tracing to %s: %w", c.TracingEndpoint, err)
	}
	return provider, nil
}
