package proxy

import "fmt"

// Action is what to do with a request.
type Action int

const (
	// ServeLocally passes the request to the local server.
	ServeLocally Action = iota
	// Forward sends the request to Decision.Peer.
	Forward
	// NotFound passes the request to the local server too: no server serves it, so the answer is
	// the local server's 404.
	NotFound
	// Unavailable answers 503.
	Unavailable
)

var actions = []string{"local", "forward", "not-found", "unavailable"}

// String is the action's name in metrics, logs and reports.
func (a Action) String() string { return nameOf(actions, int(a), "Action") }

func nameOf(names []string, value int, of string) string {
	if value < 0 || value >= len(names) {
		return fmt.Sprintf("%s(%d)", of, value)
	}
	return names[value]
}

// Reason says why an action was chosen. The values are used in metrics, logs and reports.
type Reason string

const (
	ReasonNotRouted     Reason = "not-routed"          // neither a resource nor discovery of a group
	ReasonLocal         Reason = "local"               // the local server serves it
	ReasonRerouted      Reason = "rerouted"            // a peer sent it, so this server must answer it, even with an error (KEP-4020: one hop)
	ReasonUnsynced      Reason = "unsynced"            // before the first synchronisation, or it is unknown what the local server serves
	ReasonCapable       Reason = "capable"             // the peer serves it
	ReasonNobody        Reason = "nobody"              // no server serves it
	ReasonUnknown       Reason = "unknown"             // it is unknown whether some live peers serve it
	ReasonWatchStalled  Reason = "lease-watch-stalled" // there may be a peer that this server does not know, see LeaseWatch
	ReasonUnresolved    Reason = "unresolved"          // the address of no capable peer is known
	ReasonUnreachable   Reason = "unreachable"         // every capable peer was tried, or no more attempts are allowed
	ReasonNotRepeatable Reason = "not-repeatable"      // an attempt may have been carried out and must not be repeated
)

// Decision is what to do with a request, and why.
type Decision struct {
	Action  Action
	Reason  Reason
	Peer    ServerID // for Forward
	Address string   // for Forward: host:port
	// Peers are for Unavailable: the peers that serve or may serve the request, sorted by identity.
	Peers []PeerTrouble
}

// PeerTrouble says why a peer does not serve a request.
type PeerTrouble struct {
	ID      ServerID
	Trouble string // for people, without addresses: "its address is not known", "it could not be reached"
}

// Outcome is how an attempt at a peer ended without an answer.
type Outcome int

const (
	// NotDelivered: the request certainly did not reach the peer.
	NotDelivered Outcome = iota
	// Undecided: the peer may have carried out the request before the connection broke or timed
	// out.
	Undecided
	// Refused: the peer said that it does not serve the request, at all or now, or does not accept
	// this server's credentials, and did not carry it out.
	Refused
)

var outcomes = []string{"not-delivered", "undecided", "refused"}

// String is the outcome's name in metrics, logs and reports.
func (o Outcome) String() string { return nameOf(outcomes, int(o), "Outcome") }

// Attempt is an earlier attempt at the same request that brought no answer.
type Attempt struct {
	Peer    ServerID
	Outcome Outcome
	Trouble string // for people, without addresses
}
