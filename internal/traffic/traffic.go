// Package traffic is the load on the cluster: client-go clients of several identities send what package workload chooses
// to every server, addressed directly. Every HTTP attempt becomes one [history.Operation]; nothing is retried or hidden on
// the way.
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

// Identity is someone who sends requests. Users must be unique among the identities of a [Clients].
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
