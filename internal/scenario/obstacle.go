package scenario

import "github.com/skewproof/skewproof/internal/history"

// Obstacle is the reason why a server, or a client, cannot use a connection to a server. It follows
// from the setups of the servers, and lasts as long as they do. The zero value is no obstacle.
type Obstacle string

// The obstacles, in the words for reports.
const (
	NoObstacle   Obstacle = ""
	Distrusted   Obstacle = "the certificate is not accepted"              // the TLS handshake fails
	NotAllowed   Obstacle = "the front-proxy certificate is not accepted"  // 401
	WrongAddress Obstacle = "the address advertised is nobody's"           // connection refused
	Unroutable   Obstacle = history.DetailUnroutable                       // no answer
	Unadvertised Obstacle = "its proxy is switched off: it has no address" // never dialled
)

// BlockedPath is an obstacle on one path: connections that From makes to To.
type BlockedPath struct {
	From, To string // servers; From is "" for clients
	Obstacle Obstacle
}

// ObstacleTo returns the obstacle for a server with setup s that connects to a server with setup
// to, if both setups take effect. Both may be nil.
func (s *Setup) ObstacleTo(to *Setup) Obstacle {
	switch {
	case s != nil && s.Proxy == Off:
		return NoObstacle // it has no proxy, so it asks no server
	case to != nil && to.Proxy == Off:
		return Unadvertised
	case to != nil && to.Advertise == AdvertiseWrong:
		return WrongAddress
	case to != nil && to.Advertise == AdvertiseHost:
		return Unroutable
	case s != nil && s.PeerCA == TrustStranger, to.FromClients() != NoObstacle:
		return Distrusted
	case s != nil && s.FrontProxy.wrong():
		return NotAllowed
	}
	return NoObstacle
}

// FromClients returns the obstacle for clients of a server with this setup, which may be nil.
func (s *Setup) FromClients() Obstacle {
	if s != nil && s.Serving.wrong() {
		return Distrusted
	}
	return NoObstacle
}

// RefusedError says that a server refused to start with its setup, which is [Setup.Refusable]. The
// run has not failed: a refusal does less harm than a start with a configuration that cannot work.
type RefusedError struct {
	Server string
	Why    string // the server's own words, on one or more lines
}

// Error names the server and gives its words.
func (e *RefusedError) Error() string {
	return "server " + e.Server + " refuses its configuration: " + e.Why
}

// String returns the words for reports.
func (o Obstacle) String() string { return string(o) }

// Fault returns the kind of the obstacle's fault in histories.
func (o Obstacle) Fault() string {
	if o == Unadvertised {
		return history.FaultProxyOff
	}
	return history.FaultMisconfiguration
}

// Distrust returns the certificate at fault; empty if no certificate is.
func (o Obstacle) Distrust() history.Distrust {
	switch o {
	case Distrusted:
		return history.DistrustServing
	case NotAllowed:
		return history.DistrustFrontProxy
	default:
		return ""
	}
}

// Wrong returns the kind and the detail of the fault of a setup that is wrong but blocks no path.
// It returns "" for other setups, also for unusual setups with which everything should work.
func (s *Setup) Wrong() (kind, what string) {
	switch {
	case s == nil:
		return "", ""
	case s.Proxy == Off, s.Plain: // what the proxy of a release does wrong is not about the reference
		return history.FaultProxyOff, s.String()
	case s.PeerCA == TrustMissing, s.HostnameOf != "":
		return history.FaultMisconfiguration, s.String()
	}
	return "", ""
}

// Refusable reports whether a setup is wrong in itself, so that a server may refuse to start with
// it. If a server does not start with another setup, or without a setup, this is a failure.
func (s *Setup) Refusable() bool {
	if s == nil {
		return false
	}
	return s.PeerCA != "" || s.Serving.wrong() || s.FrontProxy.wrong() || s.Advertise != "" && s.Advertise != AdvertiseNothing ||
		s.HostnameOf != ""
}
