package proxy

import "strconv"

// Action is what to do with a request.
type Action int

const (
	// ServeLocally passes the request to the local server.
	ServeLocally Action = iota
	// Forward sends it to Decision.Peer.
	Forward
	// NotFound passes it to the local server as well: no server serves it, so that the local server's own 404 is the answer.
	NotFound
	// Unavailable answers 503.
	Unavailable
)

// String is the action's name in metrics, logs and reports.
func (a Action) String() string {
	switch a {
	case ServeLocally:
		return "local"
	case Forward:
		return "forward"
	case NotFound:
		return "not-found"
	case Unavailable:
		return "unavailable"
	}
	return "action " + strconv.Itoa(int(a))
}

// Reason says why an action was chosen. The values stand in metrics, logs and reports.
type Reason string

// The reasons.
const (
	ReasonNotRouted     Reason = "not-routed"          // neither a resource nor discovery of a group
	ReasonLocal         Reason = "local"               // the local server serves it
	ReasonRerouted      Reason = "rerouted"            // a peer sent it, so it is answered here, whatever the answer (KEP-4020: one hop)
	ReasonUnsynced      Reason = "unsynced"            // before the first synchronisation, or what the local server serves is unknown
	ReasonCapable       Reason = "capable"             // the peer serves it
	ReasonNobody        Reason = "nobody"              // no server serves it
	ReasonUnknown       Reason = "unknown"             // it is unknown whether some live peers serve it
	ReasonWatchStalled  Reason = "lease-watch-stalled" // there may be a peer that is not known, see LeaseWatch
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
	// Peers are, for Unavailable, the peers that serve the request or may serve it, sorted by identity, each with its problem.
	Peers []PeerTrouble
}

// PeerTrouble says why a peer does not serve a request.
type PeerTrouble struct {
	ID      ServerID
	Trouble string // for people, without addresses: "its address is not known", "it could not be reached"
}

// Outcome is how an attempt at a peer ended that brought no answer.
type Outcome int

const (
	// NotDelivered is certain: there was no connection, or no room for the request.
	NotDelivered Outcome = iota
	// Undecided: the connection broke, or the time was over, before an answer came. The peer may have carried the request out.
	Undecided
	// Refused: the peer says that it does not serve the request. It has not carried it out.
	Refused
)

// String is the outcome's name in metrics, logs and reports.
func (o Outcome) String() string {
	switch o {
	case NotDelivered:
		return "not-delivered"
	case Undecided:
		return "undecided"
	case Refused:
		return "refused"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// Attempt is an earlier attempt at the same request that brought no answer.
type Attempt struct {
	Peer    ServerID
	Outcome Outcome
	Trouble string // for people, without addresses
}
