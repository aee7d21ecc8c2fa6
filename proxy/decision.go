package proxy

// Action is what to do with a request.
type Action int

const (
	// ServeLocally hands the request to the local server.
	ServeLocally Action = iota
	// Forward sends it to Decision.Peer.
	Forward
	// NotFound hands it to the local server as well, whose own 404 is the answer: nobody serves it.
	NotFound
	// Unavailable answers 503.
	Unavailable
)

// Reason says why.
type Reason string

const (
	ReasonNotRouted     Reason = "not-routed"          // neither a resource nor discovery of a group
	ReasonLocal         Reason = "local"               // the local server serves it
	ReasonRerouted      Reason = "rerouted"            // a peer sent it: it is answered here, whatever the answer (KEP-4020, one hop)
	ReasonUnsynced      Reason = "unsynced"            // nothing is known yet
	ReasonCapable       Reason = "capable"             // the peer serves it
	ReasonNobody        Reason = "nobody"              // nobody serves it
	ReasonUnknown       Reason = "unknown"             // what some live server serves is not known
	ReasonWatchStalled  Reason = "lease-watch-stalled" // the lease watch has stalled, so there may be a peer that is not known
	ReasonUnresolved    Reason = "unresolved"          // the address of no capable peer is known
	ReasonUnreachable   Reason = "unreachable"         // every capable peer was tried, or may be tried no more
	ReasonNotRepeatable Reason = "not-repeatable"      // an attempt may have been carried out and must not be repeated
)

// Decision is what to do with a request, and why.
type Decision struct {
	Action  Action
	Reason  Reason
	Peer    ServerID // for Forward
	Address string   // for Forward: host:port
	// Peers are those that bear on an Unavailable, sorted by identity, each with what is the matter with it.
	Peers []PeerTrouble
}

// PeerTrouble is why a peer does not serve a request.
type PeerTrouble struct {
	ID      ServerID
	Trouble string // for people, without addresses: "its address is not known", "could not be reached"
}

// Outcome is how an attempt at a peer ended, short of an answer.
type Outcome int

const (
	// NotDelivered is certain: there was no connection, or no room for the request.
	NotDelivered Outcome = iota
	// Undecided is when the connection broke, or the time was over, before an answer: the peer may have carried the request out.
	Undecided
	// Refused is the peer's own word that it does not serve this: it was not carried out.
	Refused
)

// Attempt is one earlier try at the same request.
type Attempt struct {
	Peer    ServerID
	Outcome Outcome
	Trouble string // for people, without addresses
}
