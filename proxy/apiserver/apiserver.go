// Package apiserver puts the Mixed Version Proxy into a kube-apiserver, at the place that KEP-4020
// describes: behind authentication, audit, authorization, and priority and fairness, in front of
// the server's own handler. What these do, the package does not do again.
//
// The folder _server has the main function of a kube-apiserver with this proxy. It is built in the
// module of a released kube-apiserver, see package internal/binaries.
package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// Options are what the proxy takes from the flags of the kube-apiserver.
type Options struct {
	// Policy says how the proxy behaves.
	Policy proxy.Policy
	// PeerCAFile, ClientCertFile and ClientKeyFile are --peer-ca-file, --proxy-client-cert-file and
	// --proxy-client-key-file. All are needed. They are read again when they change.
	PeerCAFile, ClientCertFile, ClientKeyFile string
	// Address is the host:port at which peers reach this server.
	Address string
	// Port is the port on which the server listens. All kube-apiservers that publish no address must
	// listen on the same.
	Port int
	// Etcd has the keys of kube-apiservers.
	Etcd peers.Etcd
	// ShutdownDelay is --shutdown-delay-duration.
	ShutdownDelay time.Duration
	// Logger gets what the proxy logs. Nil: nothing is logged.
	Logger *slog.Logger
}

// learnt is how long peers get, after this server has withdrawn its address, to learn that it
// leaves. Their watch of its key needs a few milliseconds, and their next requests go elsewhere.
const learnt = time.Second

// Proxy is the Mixed Version Proxy of one kube-apiserver. Make it with [Install], then call
// [Proxy.Attach].
type Proxy struct {
	options   Options
	log       *slog.Logger
	store     *proxy.Store
	api       *http.Handler // the server's own handler, once its chain is built
	transport *transport
	sources   *peers.Sources
	publisher *peers.Publisher
	ready     atomic.Bool

	publishing context.Context    // ends when leave is called
	leave      context.CancelFunc // withdraws the address
	left       chan struct{}      // closed when the address is withdrawn
	serving    context.Context    // ends when end is called
	end        context.CancelFunc // ends the sources: the server takes no more requests
}

// Install puts the proxy into the configuration of the aggregation layer, before the server is
// made. The server's own Mixed Version Proxy must be off. Errors say which option is wrong.
func Install(c *genericapiserver.Config, o Options) (*Proxy, error) {
	switch {
	case c.APIServerID == "":
		return nil, errors.New("install the Mixed Version Proxy: the server has no identity: its feature gate APIServerIdentity is off")
	case c.Authentication.RequestHeaderConfig == nil:
		return nil, errors.New("install the Mixed Version Proxy: --requestheader-client-ca-file is missing: no peer could be recognised")
	}
	o = plantedOptions(o)
	p := &Proxy{
		options: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		store: proxy.NewStore(o.Policy, proxy.ServerID(c.APIServerID)), api: new(http.Handler), left: make(chan struct{}),
	}
	p.serving, p.end = context.WithCancel(context.Background())
	p.publishing, p.leave = context.WithCancel(p.serving)
	var err error
	if p.transport, err = newTransport(o, c.EgressSelector); err != nil {
		return nil, fmt.Errorf("install the Mixed Version Proxy: %w", err)
	}
	counts, failures := proxy.NewMetrics(), peers.NewMetrics(p.store)
	if err := errors.Join(register(counts, failures), p.learn(c, counts, failures)); err != nil {
		return nil, fmt.Errorf("install the Mixed Version Proxy: %w", err)
	}
	handler, err := p.handler(c, counts)
	if err != nil {
		return nil, fmt.Errorf("install the Mixed Version Proxy: %w", err)
	}
	behind := c.BuildHandlerChainFunc
	c.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		*p.api = api
		trusted := c.Authentication.RequestHeaderConfig
		return p.whenReady(behind(plantedHandler(handler, fromPeer(trusted)), c), frontProxy(trusted))
	}
	c.AddReadyzChecks(
		healthz.NamedCheck("mixed-version-proxy-peers", func(*http.Request) error { return p.known() }),
		healthz.NamedCheck(addressCheck, func(*http.Request) error { return p.published() }),
	)
	return p, nil
}

// whenReady puts off what peers forward until the server is ready. A server that was killed and has
// started again still has its old key for some seconds, and its peers send it requests. The chain
// would answer 403, because the rules of authorization are not loaded yet. After a 503 with
// Retry-After a peer with this proxy asks another one.
func (p *Proxy) whenReady(chain http.Handler, frontProxy func(*http.Request) (name string, ok bool)) http.Handler {
	status := apierrors.NewServiceUnavailable("this server is not ready yet").Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.ready.Load() || r.Header.Get(proxy.HopHeader) == "" {
			chain.ServeHTTP(w, r)
			return
		}
		if _, ok := frontProxy(r); !ok {
			chain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(status) // the peer has gone
	})
}

// addressCheck is the check of /readyz that this server's address is published. The proxy publishes
// the address when all other checks pass.
const addressCheck = "mixed-version-proxy-address"

func (p *Proxy) known() error {
	switch t := p.store.Table(); {
	case p.options.Policy.Fetching.LocalInterval > 0 && !t.LocalKnown():
		return errors.New("it is not known yet what this server serves")
	case !t.Synced():
		return errors.New("not every peer was asked yet what it serves")
	}
	return nil
}

func (p *Proxy) published() error {
	if p.publisher.Published() {
		return nil
	}
	return errors.New("the address for peers is not published yet")
}

// handler makes the handler of the chain. It calls the server's own handler through p.api, which is
// known only later.
func (p *Proxy) handler(c *genericapiserver.Config, counts *proxy.Metrics) (http.Handler, error) {
	headers, err := identityHeaders(c.Authentication.RequestHeaderConfig)
	if err != nil {
		return nil, err
	}
	return proxy.New(proxy.Config{
		Store:     p.store,
		Local:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.api).ServeHTTP(w, r) }),
		Transport: plantedTransport(newTraced(delegating{p.transport}, c.TracerProvider)),
		FromPeer:  fromPeer(c.Authentication.RequestHeaderConfig),
		Document: func(ctx context.Context, to proxy.PeerView, path string) ([]byte, string, error) {
			return p.sources.Document(ctx, to, path)
		},
		IdentityHeaders: headers,
		Observer:        proxy.Observers{plantedMetrics(counts), observer{p}},
		Logger:          p.log,
	})
}

// learn makes the sources of knowledge about peers, and the publisher of this server's address.
func (p *Proxy) learn(c *genericapiserver.Config, counts *proxy.Metrics, failures *peers.Metrics) error {
	headers, err := identityHeaders(c.Authentication.RequestHeaderConfig)
	if err != nil {
		return err
	}
	self := rest.CopyConfig(c.LoopbackClientConfig)
	self.QPS = -1
	client, err := kubernetes.NewForConfig(self)
	if err != nil {
		return fmt.Errorf("make a client of this server: %w", err)
	}
	untyped, err := dynamic.NewForConfig(self)
	if err != nil {
		return fmt.Errorf("make a client of this server: %w", err)
	}
	p.sources, err = peers.New(peers.Config{
		Store: p.store, Client: client, Etcd: p.options.Etcd, Dynamic: untyped, Address: p.options.Address,
		Identify: p.transport.identify, Port: p.options.Port,
		PeerTransport: p.transport, LocalTransport: inProcess{p.api},
		Identity: headers, Metrics: failures, FetchAnswered: counts.Fetched, Logger: p.log,
	})
	if err != nil {
		return err
	}
	p.publisher = &peers.Publisher{
		Etcd: p.options.Etcd, Server: proxy.ServerID(c.APIServerID), Address: p.options.Address, Ready: p.ready.Load, Logger: p.log,
	}
	return nil
}

// Attach starts the proxy with the server, and withdraws its address before serving ends.
func (p *Proxy) Attach(s *genericapiserver.GenericAPIServer) error {
	readyz, err := rest.HTTPClientFor(s.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("attach the Mixed Version Proxy: make a client of this server: %w", err)
	}
	at := s.LoopbackClientConfig.Host + "/readyz?exclude=" + addressCheck
	if err := s.AddPostStartHook("mixed-version-proxy", func(genericapiserver.PostStartHookContext) error {
		go func() {
			if err := p.sources.Run(p.serving); err != nil {
				p.log.Error("the Mixed Version Proxy learns nothing of peers", "err", err)
			}
		}()
		go p.transport.run(p.serving)
		go p.watchReadiness(readyz, at)
		go func() {
			defer close(p.left)
			if err := p.publisher.Run(p.publishing); err != nil {
				p.log.Error("the address for peers was not withdrawn", "err", err)
			}
		}()
		return nil
	}); err != nil {
		return err
	}
	return s.AddPreShutdownHook("mixed-version-proxy", func() error {
		// Hooks run beside the shutdown delay. The server serves during the delay, so peers must go
		// on sending it requests.
		time.Sleep(p.options.ShutdownDelay)
		p.leave()
		<-p.left
		time.Sleep(learnt)
		p.end()
		return nil
	})
}

// watchReadiness asks the server whether it is ready, aside from the check that waits for the
// address. Before that, peers would get 403, because the rules of authorization are not loaded.
func (p *Proxy) watchReadiness(client *http.Client, url string) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for !p.ready.Load() {
		if answer, err := client.Get(url); err == nil {
			answer.Body.Close()
			p.ready.Store(answer.StatusCode == http.StatusOK)
		}
		select {
		case <-p.publishing.Done():
			return
		case <-tick.C:
		}
	}
}

// identityHeaders returns the names of the headers in which peers read a user: those in which this
// server reads one.
func identityHeaders(c *authenticatorfactory.RequestHeaderConfig) (h proxy.IdentityHeaders, err error) {
	first := func(names []string) string {
		if len(names) == 0 {
			return ""
		}
		return names[0]
	}
	h.User, h.Group = first(c.UsernameHeaders.Value()), first(c.GroupHeaders.Value())
	h.ExtraPrefix = first(c.ExtraHeaderPrefixes.Value())
	if h.User == "" || h.Group == "" {
		return h, errors.New("--requestheader-username-headers and --requestheader-group-headers are needed, so that peers learn who asks")
	}
	return h, nil
}

// dialer returns how the server dials other servers of its control plane. nil: directly.
func dialer(from *egressselector.EgressSelector) (dial, error) {
	if from == nil {
		return nil, nil
	}
	found, err := from.Lookup(egressselector.ControlPlane.AsNetworkContext())
	if err != nil {
		return nil, fmt.Errorf("find the egress of the control plane: %w", err)
	}
	return dial(found), nil
}
