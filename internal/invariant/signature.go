package invariant

import (
	"cmp"
	"strings"
	"time"
)

// Signature says of which kind a violation is. It is computed from the history alone, before
// violations are grouped. It is the same on every backend, because it contains no server name, no
// time and no seed. Violations with the same signature are shown as one evidence item.
//
// Invariant, Mechanism, Roles, Answer, Way, Reach, Wrong and Target say what was asked and what was
// wrong. Obstacle, Before, Change, Setup, Since, Started, Elsewhere, Extension and Twin describe
// the circumstances. An empty field does not apply, or the history does not say it.
type Signature struct {
	Invariant string    `json:"invariant"`
	Mechanism Mechanism `json:"mechanism"`
	// Roles compares the version of the asked server with those of the servers that could have
	// served the request.
	Roles Role `json:"roles,omitempty"`
	// Answer is the status and its subject: "404 resource", "503 no connection", "no answer
	// (timeout)".
	Answer string `json:"answer,omitempty"`
	// Way says who handled the request.
	Way Way `json:"way,omitempty"`
	// Reach says how many of the servers that could have served the request could be reached.
	Reach Reach `json:"reach,omitempty"`
	// Wrong is a distinction that the invariant itself makes: "same resources in another order".
	Wrong string `json:"wrong,omitempty"`
	// Target is the state of the server to which the request was passed on.
	Target Target `json:"target,omitempty"`
	// Obstacle is what kept the asked server from the servers that it could not reach.
	Obstacle Obstacle `json:"obstacle,omitempty"`
	// Before is an obstacle shortly before the violation, if there is none during it. It is "etcd"
	// if a serving server was cut off from etcd, at the time or before, so that its address was
	// unknown, or if the asked server was cut off from etcd, where it finds addresses.
	Before Obstacle `json:"before,omitempty"`
	// Change is what had changed shortly before the asked server first gave this answer.
	Change Change `json:"change,omitempty"`
	// Setup is the unusual part of the configuration at that time.
	Setup string `json:"setup,omitempty"`
	// Since says for how long nothing had changed.
	Since Since `json:"since,omitempty"`
	// Started says whether the servers that could have served the request became ready shortly
	// before.
	Started Started `json:"started,omitempty"`
	// Elsewhere is what kept the asked server from the other servers.
	Elsewhere Obstacle `json:"elsewhere,omitempty"`
	// Extension says whether a custom resource or an aggregated API was where the violation is.
	Extension Extension `json:"extension,omitempty"`
	// Twin says which server had the host name of another one.
	Twin Twin `json:"twin,omitempty"`
}

// Mechanism is the part of the Mixed Version Proxy that a request tests.
type Mechanism string

// These are all mechanisms.
const (
	MechanismResource      Mechanism = "whole resource"   // the asked server serves nothing of the resource
	MechanismSubresource   Mechanism = "subresource"      // the asked server serves the resource, but not the subresource
	MechanismWatch         Mechanism = "watch"            // the watch began, or got no answer
	MechanismUpgrade       Mechanism = "upgrade"          // to WebSocket or SPDY; it began, or got no answer or 401
	MechanismForgedHop     Mechanism = "forged hop"       // the client itself set the header of the hop
	MechanismDiscovery     Mechanism = "merged discovery" // /api and /apis, aggregated
	MechanismGroupDocument Mechanism = "group document"   // /apis/GROUP and /apis/GROUP/VERSION
	MechanismOwnDiscovery  Mechanism = "own discovery"    // with profile=nopeer
	MechanismLegacy        Mechanism = "legacy discovery"
	MechanismOpenAPI       Mechanism = "OpenAPI"
	MechanismProcess       Mechanism = "process"       // an apiserver's process; there is no request
	MechanismConfiguration Mechanism = "configuration" // a process, compared with its flags
	MechanismController    Mechanism = "controller"    // a controller did harm, and no answer is known that misled it
	MechanismInformer      Mechanism = "informer"      // an informer's deliveries, over any number of requests
)

// Role is the version of the asked server, compared with those of the servers that could have
// served the request.
type Role string

// These are all roles.
const (
	RoleNone   Role = ""       // no server could have served it, or versions are unknown
	RoleItself Role = "itself" // the asked server serves it
	RoleOlder  Role = "older"  // older than all of them
	RoleNewer  Role = "newer"  // newer than all of them
	RoleSame   Role = "same"   // the same version as all of them
	RoleMixed  Role = "mixed"  // older than some, newer than others or the same
)

// Way says which servers handled a request, by their own logs.
type Way string

// These are all ways.
const (
	WayUnknown  Way = ""          // no server has recorded it
	WayAnswered Way = "answered"  // the asked server answered itself
	WayPassedOn Way = "passed on" // a peer handled the request
)

// Reach says which of the servers that could have served a request the asked server could reach.
type Reach string

// These are all kinds of reach.
const (
	ReachNobody Reach = ""                 // no other server could have served it
	ReachAll    Reach = "all reachable"    // nothing kept the asked server from any of them
	ReachSome   Reach = "some reachable"   // it could reach at least one of them, but not all
	ReachPart   Reach = "partly reachable" // reachable for a part of the time, or on some connections
	ReachNone   Reach = "none reachable"
	ReachLost   Reach = "lost" // they were killed or crashed
)

// Obstacle is what kept the asked server from the servers that could have served a request.
type Obstacle string

// These are all obstacles, the strongest first. A signature names only one.
const (
	ObstacleNone          Obstacle = ""
	ObstacleConfiguration Obstacle = "configuration" // a certificate, an authority, an address or a flag
	ObstacleProxyOff      Obstacle = "proxy off"     // the peer's proxy is switched off
	ObstacleBrokenOff     Obstacle = "broken off"    // fetches of a peer's discovery break off
	ObstacleDiscovery     Obstacle = "discovery"     // fetches of a peer's discovery fail in another way
	ObstacleDraining      Obstacle = "draining"      // the peer was asked to stop, and serves on; not in Before
	ObstacleProcess       Obstacle = "process"       // the peer is down, paused or starting, or is stopping and does not serve
	ObstacleLink          Obstacle = "link"          // a fault on the connection
	ObstacleEtcd          Obstacle = "etcd"          // the peer is cut off from etcd; not in Obstacle
)

// Change is what had changed within changeLasts before a violation, or since the start of the first
// fault that was active then.
type Change string

// These are all changes, the strongest first. A signature names only one.
const (
	ChangeNone     Change = ""
	ChangeAsked    Change = "asked server restarted" // or started for the first time while there was an obstacle
	ChangeCapable  Change = "serving server restarted"
	ChangeOther    Change = "other server restarted"
	ChangeLease    Change = "identity lease deleted" // by an administrator; of any server
	ChangeDeletion Change = "deleted"                // some server had served it, and stopped without a restart
	ChangeCreation Change = "created"                // some server began to serve it without a restart
)

// Since says how long before a violation the last disturbance ended.
type Since string

// These are all values of Since.
const (
	SinceLong   Since = ""       // longer ago than Bounds.Convergence; or there was no disturbance, or it has not ended
	SinceRecent Since = "recent" // not longer ago than Bounds.Convergence
)

// changeLasts is the longest time between a wrong answer and its cause.
const changeLasts = 30 * time.Second

// String is the signature in a line, for people.
func (s Signature) String() string {
	words := []string{string(s.Mechanism)}
	for _, more := range []string{s.Wrong, s.Answer, string(s.Way), targetWords(s.Target), roleWords[s.Roles], string(s.Reach),
		obstacleWords[s.Obstacle]} {
		if more != "" {
			words = append(words, more)
		}
	}
	if s.Before != ObstacleNone {
		words = append(words, "before that "+obstacleWords[s.Before])
	}
	if s.Change != ChangeNone {
		words = append(words, changeWords[s.Change])
	}
	if s.Setup != "" {
		words = append(words, "with "+s.Setup)
	}
	if s.Since == SinceRecent {
		words = append(words, "soon after a disturbance")
	}
	if s.Started != StartedLong {
		words = append(words, "the serving servers started "+string(s.Started))
	}
	if s.Elsewhere != ObstacleNone {
		words = append(words, "another server: "+obstacleWords[s.Elsewhere])
	}
	if s.Extension != ExtensionNone {
		words = append(words, s.Extension.words())
	}
	if s.Twin != TwinNone {
		words = append(words, s.Twin.words())
	}
	return s.Invariant + ": " + strings.Join(words, ", ")
}

var (
	roleWords = map[Role]string{
		RoleItself: "the asked server serves it itself", RoleOlder: "asked server older", RoleNewer: "asked server newer",
		RoleSame: "versions the same", RoleMixed: "versions older and newer",
	}
	obstacleWords = map[Obstacle]string{
		ObstacleConfiguration: "misconfigured", ObstacleProxyOff: "its proxy off", ObstacleBrokenOff: "its discovery breaking off",
		ObstacleDiscovery: "its discovery failing", ObstacleDraining: "asked to stop and still serving", ObstacleProcess: "its process not there",
		ObstacleLink: "its link faulty", ObstacleEtcd: "cut off from etcd",
	}
	changeWords = map[Change]string{
		ChangeAsked: "after the asked server restarted", ChangeCapable: "after a serving server restarted",
		ChangeOther: "after another server restarted", ChangeLease: "after an identity lease was deleted", ChangeDeletion: "after it was deleted",
		ChangeCreation: "after it was created",
	}
)

// Compare orders signatures by their fields.
func (s Signature) Compare(o Signature) int {
	return cmp.Or(cmp.Compare(s.Invariant, o.Invariant), cmp.Compare(s.Mechanism, o.Mechanism), cmp.Compare(s.Roles, o.Roles),
		cmp.Compare(s.Answer, o.Answer), cmp.Compare(s.Way, o.Way), cmp.Compare(s.Reach, o.Reach), cmp.Compare(s.Wrong, o.Wrong),
		cmp.Compare(s.Obstacle, o.Obstacle), cmp.Compare(s.Before, o.Before), cmp.Compare(s.Change, o.Change),
		cmp.Compare(s.Setup, o.Setup), cmp.Compare(s.Since, o.Since), cmp.Compare(s.Target, o.Target),
		cmp.Compare(s.Started, o.Started), cmp.Compare(s.Elsewhere, o.Elsewhere),
		cmp.Compare(s.Extension, o.Extension), cmp.Compare(s.Twin, o.Twin))
}

// Core is the signature without the circumstances. Violations that differ only in the circumstances
// show one kind of defect.
func (s Signature) Core() Signature {
	s.Obstacle, s.Before, s.Change, s.Setup, s.Since = ObstacleNone, ObstacleNone, ChangeNone, "", SinceLong
	s.Started, s.Elsewhere, s.Extension, s.Twin = StartedLong, ObstacleNone, ExtensionNone, TwinNone
	return s
}
