// Package traffic is the load on the cluster. client-go clients of several identities send the
// requests that package workload chooses to every server, by the server's own address. Every HTTP
// attempt becomes one [history.Operation]; no client retries or hides an attempt.
package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/connections"
	"github.com/skewproof/skewproof/internal/history"
)

// Target is the address of one server for clients.
type Target struct {
	Server string // its name in the history, such as "a"
	URL    string // "https://198.19.0.1:6443"; only https is accepted
	// Config, if not nil, replaces the Config of every identity, because the server knows the user
	// by credentials of its own, or has another authority. Whom it impersonates is not recorded.
	Config *rest.Config
}

// Identity is a sender of requests. Users must be unique among the identities of a [Clients].
type Identity struct {
	Name string // for people: "admin", "reader", "service-account"
	User string // the user name that servers see; recorded as Operation.User
	// Impersonator is the user whose credentials Config has, if Config impersonates User. Otherwise it
	// is empty.
	Impersonator string
	// Config has the credentials and the CA. This package sets host, rate limits, timeout, proxy
	// and transport hooks. It rejects Insecure, because answers of unknown servers prove nothing.
	Config rest.Config
}

// Recorder records what the clients see; *history.Recorder is one. Calls are concurrent.
type Recorder interface {
	Operation(history.Operation)
	Document(history.Document)
	HasDocument(hash string) bool
	Now() history.Time
}

var _ Recorder = (*history.Recorder)(nil)

// Clients has one client for each pair of identity and server. Every client has its own connections
// (HTTP/2, as client-go makes them), so that a broken connection to one server says nothing about
// another server. Until Close, any number of [Load]s and sweeps may use it concurrently.
type Clients struct {
	targets    []Target
	identities []Identity
	clients    map[clientKey]*client
}

type clientKey struct{ user, server string }

// client is the client of one identity for one server.
type client struct {
	conns   *connections.Set
	record  *recordingTransport
	typed   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	rest    *rest.RESTClient
	socket  *socket
}

// NewClients builds the clients. A client connects at its first request. Errors name the target and
// the identity.
func NewClients(targets []Target, identities []Identity, recorder Recorder) (*Clients, error) {
	if len(targets) == 0 || len(identities) == 0 {
		return nil, errors.New("build traffic clients: at least one target and one identity are needed")
	}
	documents := &sync.Map{}
	all := &Clients{targets: targets, identities: identities, clients: map[clientKey]*client{}}
	for _, identity := range identities {
		for _, target := range targets {
			key := clientKey{identity.User, target.Server}
			if all.clients[key] != nil {
				return nil, fmt.Errorf("build traffic clients: identity %q or server %q is listed twice", identity.Name, target.Server)
			}
			c, err := newClient(target, identity, recorder, documents)
			if err != nil {
				return nil, fmt.Errorf("build traffic client of %q for server %q: %w", identity.Name, target.Server, err)
			}
			all.clients[key] = c
		}
	}
	return all, nil
}

// asClientGo returns a dialer like client-go's default.
func asClientGo() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
}

// Close closes all connections and prevents new ones. It cuts off requests in progress; there are
// none once every Run and Sweep has returned. Close may be called more than once.
func (c *Clients) Close() {
	for _, one := range c.clients {
		one.conns.Close()
	}
}

func (c *Clients) get(user, server string) *client { return c.clients[clientKey{user, server}] }

func newClient(target Target, identity Identity, recorder Recorder, documents *sync.Map) (*client, error) {
	if u, err := url.Parse(target.URL); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an https URL", target.URL)
	}
	if as := identity.Config.Impersonate.UserName; (as != "" || identity.Impersonator != "") &&
		(as != identity.User || identity.Impersonator == "") {
		return nil, fmt.Errorf("its configuration impersonates %q, but its user is %q and its impersonator %q", as, identity.User,
			identity.Impersonator)
	}
	config := rest.CopyConfig(cmp.Or(target.Config, &identity.Config))
	if config.Insecure {
		return nil, errors.New("its configuration skips TLS verification: give it the CA of the cluster instead")
	}
	config.Host = target.URL
	config.UserAgent = "skewproof/" + identity.Name
	config.QPS = -1 // the load has its own limiter; a second one would delay requests without a record
	// A timeout in rest.Config becomes a "timeout" query parameter and so the server's deadline.
	// Our timeouts are in contexts.
	config.Timeout = 0
	// No environment variable may redirect requests. A proxy function also makes client-go build a
	// transport for this client alone. Otherwise client-go shares a cached transport among all
	// clients with the same TLS configuration (k8s.io/client-go/transport/cache.go, tlsConfigKey).
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.DisableCompression = true // on loopback, more bytes cost less than gzip on both ends
	config.WarningHandler = rest.NoWarnings{}
	config.WarningHandlerWithContext = nil
	conns := connections.New()
	config.Dial = conns.Dialer(asClientGo())
	record := &recordingTransport{server: target.Server, user: identity.User, impersonator: identity.Impersonator, recorder: recorder,
		gate: newGate(), documents: documents}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		record.next = next // called once: HTTPClientFor builds the one transport chain that all clients below share
		return record
	}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &client{conns: conns, record: record}
	if c.socket, err = newSocket(config, conns, record); err != nil {
		return nil, err
	}
	record.http1 = c.socket.plain

	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
	if c.typed, err = kubernetes.NewForConfigAndClient(typed, httpClient); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, err
	}
	bare := rest.CopyConfig(config)
	bare.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(bare, httpClient); err != nil {
		return nil, err
	}
	return c, nil
}
