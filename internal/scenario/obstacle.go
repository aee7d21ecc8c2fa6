package scenario

import "github.com/skewproof/skewproof/internal/history"

// Obstacle is what stands between two servers, or between clients and a server, because of how they are set up. Nothing that depends on it
// can work for as long as they are, whatever the network does. The empty one is none.
type Obstacle string

// The obstacles, as people read them.
const (
	NoObstacle   Obstacle = ""
	Distrusted   Obstacle = "the certificate is not accepted"              // the TLS handshake fails
	NotAllowed   Obstacle = "the front-proxy certificate is not accepted"  // 401
	WrongAddress Obstacle = "the address advertised is nobody's"           // connection refused
	Unroutable   Obstacle = "no way leads to the address advertised"       // no answer
	Unadvertised Obstacle = "its proxy is switched off: it has no address" // never dialled
)

// BlockedPath is an obstacle on one path: connections that From makes to To.
type BlockedPath struct {
	From, To string // servers; From is "" for clients
	Obstacle Obstacle
}

// ObstacleTo is what stands in the way of a server that is set up like this when it asks a server that is set up like the other.
// It follows if the setups have the effect that they are meant to have. Both may be nil.
func (s *Setup) ObstacleTo(to *Setup) Obstacle {
	switch {
	case s != nil && s.Proxy == Off:
		return NoObstacle // it asks nobody
	case to != nil && to.Proxy == Off:
		return Unadvertised
	case to != nil && to.Advertise == AdvertiseWrong:
		return WrongAddress
	case to != nil && to.Advertise == AdvertiseHost:
		return Unroutable
	case s != nil && s.PeerCA == TrustStranger, to.FromClients() != NoObstacle:
		return Distrusted
	case s != nil && (s.FrontProxy == CertificateExpired || s.FrontProxy == CertificateStranger || s.FrontProxy == CertificateOther):
		return NotAllowed
	}
	return NoObstacle
}

// FromClients is what stands in the way of clients of a server that is set up like this. The setup may be nil.
func (s *Setup) FromClients() Obstacle {
	if s != nil && (s.Serving == CertificateExpired || s.Serving == CertificateStranger || s.Serving == CertificateOther) {
		return Distrusted
	}
	return NoObstacle
}

// RefusedError says that a server would not start with the setup that it was given, which is [Setup.Refusable]. That is no failure of the run: to refuse what cannot work
// does less harm than to go ahead with it.
type RefusedError struct {
	Server string
	Why    string // in the words of the server, on one or more lines
}

// Error names the server and gives its own words.
func (e *RefusedError) Error() string {
	return "server " + e.Server + " refuses its configuration: " + e.Why
}

// String is what people read.
func (o Obstacle) String() string { return string(o) }

// Fault is the kind of the fault that it is in histories.
func (o Obstacle) Fault() string {
	if o == Unadvertised {
		return history.FaultProxyOff
	}
	return history.FaultMisconfiguration
}

// Distrust is whose certificate is at fault, if one is.
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

// Wrong is the kind of fault, with its detail, of a setup that is wrong although it blocks no path; "" for any other setup. A
// setup with which everything should work is not wrong, however unusual it is.
func (s *Setup) Wrong() (kind, what string) {
	switch {
	case s == nil:
		return "", ""
	case s.Proxy == Off:
		return history.FaultProxyOff, s.String()
	case s.PeerCA == TrustMissing, s.HostnameOf != "":
		return history.FaultMisconfiguration, s.String()
	}
	return "", ""
}

// Refusable reports whether something in a setup is wrong in itself, so that a server may refuse to start with it. One that does not start with
// any other, a nil one too, has failed.
func (s *Setup) Refusable() bool {
	if s == nil {
		return false
	}
	wrong := func(c Certificate) bool { return c != "" && c != CertificateRotated }
	return s.PeerCA != "" || wrong(s.Serving) || wrong(s.FrontProxy) || s.Advertise != "" && s.Advertise != AdvertiseNothing || s.HostnameOf != ""
}
