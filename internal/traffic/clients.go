// Package traffic is the load on the cluster: client-go clients of several identities send what
// package workload chooses to every server, addressed directly. Every HTTP attempt becomes one
// [history.Operation]; nothing is retried or hidden on the way.
package traffic

import (
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

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy/connections"
)

// Target is one server as clients address it.
type Target struct {
	Server string // its name in the history, such as "a"
	URL    string // "https://198.19.0.1:6443"; nothing but https is accepted
}

// Identity is someone who sends requests. Users must be unique among the identities of a [Clients].
type Identity struct {
	Name string // for people: "admin", "reader", "service-account"
	User string // the user name that servers see; recorded as Operation.User
	// Config carries the credentials and the CA. Host, rate limits, timeout, proxy and transport
	// hooks are set by this package. Insecure is refused: answers of unknown servers prove nothing.
	Config rest.Config
}

// Recorder takes what the clients see; *history.Recorder is one. Calls are concurrent.
type Recorder interface {
	Operation(history.Operation)
	Document(history.Document)
	HasDocument(hash string) bool
	Now() history.Time
}

var _ Recorder = (*history.Recorder)(nil)

// Clients holds one client for each pair of identity and server. Every client has connections of
// its own (HTTP/2, as client-go makes them), so that a broken connection to one server says nothing
// of another. It is safe for concurrent use by any number of [Load]s and sweeps until Close.
type Clients struct {
	targets    []Target
	identities []Identity
	clients    map[clientKey]*client
}

type clientKey struct{ user, server string }

// client is one identity's way to one server.
type client struct {
	conns   *connections.Set
	record  *recordingTransport
	typed   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	rest    *rest.RESTClient
	socket  *socket
}

// NewClients builds the clients. The first request makes the first connection. Errors name both.
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

// asClientGo dials as client-go does unless told otherwise.
func asClientGo() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
}

// Close closes all connections and lets no new ones be made. Requests under way are cut off; there
// are none once every Run and Sweep has returned. Close may be called more than once.
func (c *Clients) Close() {
	for _, one := range c.clients {
		one.conns.Close()
	}
}

func (c *Clients) get(user, server string) *client { return c.clients[clientKey{user, server}] }

func newClient(target Target, identity Identity, recorder Recorder, documents *sync.Map) (*client, error) {
	if u, err := url.Parse(target.URL); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no https URL", target.URL)
	}
	config := rest.CopyConfig(&identity.Config)
	if config.Insecure {
		return nil, errors.New("its configuration skips TLS verification: give it the CA of the cluster instead")
	}
	config.Host = target.URL
	config.UserAgent = "skewproof/" + identity.Name
	config.QPS = -1 // the load has a limiter of its own; a second one would stretch requests unseen
	// A rest.Config timeout becomes a "timeout" query parameter and the server's deadline: contexts
	// carry ours.
	config.Timeout = 0
	// Nothing of the environment may lead requests elsewhere. A proxy function also makes client-go
	// build a transport for this client alone, instead of sharing a cached one with all that have
	// the same TLS configuration (k8s.io/client-go/transport/cache.go, tlsConfigKey).
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.DisableCompression = true // loopback bytes are cheaper than gzip on both ends
	config.WarningHandler = rest.NoWarnings{}
	config.WarningHandlerWithContext = nil
	conns := &connections.Set{}
	config.Dial = conns.Dialer(asClientGo())
	record := &recordingTransport{server: target.Server, user: identity.User, recorder: recorder, gate: newGate(), documents: documents}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		record.next = next // called once: HTTPClientFor builds the one chain that all clients below share
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
