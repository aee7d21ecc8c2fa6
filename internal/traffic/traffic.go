// Package traffic is the load on the cluster: client-go clients of several identities ask every server, addressed
// directly, for resources that all servers, only some, or none of them serve. Every HTTP attempt becomes one
// [history.Operation]; nothing is retried or hidden on the way.
package traffic

import (
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
)

// Target is one server as clients address it.
type Target struct {
	Server string // its name in the history, such as "a"
	URL    string // "https://198.19.0.1:6443"; nothing but https is accepted
}

// Identity is someone who sends requests. Names must be unique among the identities of a [Clients].
type Identity struct {
	Name string // for people: "admin", "reader", "service-account"
	User string // the user name that servers see; recorded as Operation.User
	// Config carries the credentials and the CA. Host, rate limits, timeout, proxy and transport hooks are set by
	// this package. Insecure is refused: an operation answered by who knows whom proves nothing.
	Config rest.Config
}

// Recorder takes what the clients see; *history.Recorder is one. All methods are called concurrently.
type Recorder interface {
	Operation(history.Operation)
	Document(history.Document)
	HasDocument(hash string) bool
	Now() history.Time
}

var _ Recorder = (*history.Recorder)(nil)

// The names in Operation.Client.
const (
	ClientTyped   = "typed"   // the generated clientset, speaking protobuf
	ClientDynamic = "dynamic" // the dynamic client, speaking JSON
	ClientREST    = "rest"    // a bare REST client: tables, protobuf of any resource, discovery, the sweep
)

// Namespace is where all objects of a run live. [Setup] creates it.
const Namespace = "skewproof"

// managedBy marks every object that the load and [Setup] create, so that they can be told from those of others.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByValue = "skewproof"
)
