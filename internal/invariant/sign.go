package invariant

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// The functions in this file compute the fields of a Signature that are about the request and its
// answer; circumstances.go has the others.

// signature computes the signature of a violation in the response to o, which was sent in situation
// s. The tally adds the invariant.
//
// If nothing happened when the answers began to be wrong, or nothing that could keep knowledge from
// the server, the wrong answers may have begun before the first of them that was recorded. Then the
// signature names what happened since the last answer that was different.
func (f *Facts) signature(o *observation, s situation, wrong string) Signature {
	since := f.changesSince(o)
	out := f.signatureSince(o, s, wrong, since)
	restart := out.Change == ChangeAsked || out.Change == ChangeCapable || out.Change == ChangeOther // which needs an obstacle
	unexplained := out.Change == ChangeNone || restart && out.Obstacle == ObstacleNone && out.Before == ObstacleNone
	if unexplained && o.otherwise < since {
		return f.signatureSince(o, s, wrong, o.otherwise)
	}
	return out
}

// signatureSince is the signature with the changes and obstacles since a time.
func (f *Facts) signatureSince(o *observation, s situation, wrong string, since history.Time) Signature {
	var candidates []Candidate
	if o.resource != nil && o.resource.key != (key{}) { // every server serves discovery itself
		candidates = f.candidates(o, s)
	}
	out := Signature{
		Mechanism: f.mechanism(o), Roles: f.role(o, candidates), Answer: answerKind(o.op), Wrong: wrong,
		Change: f.change(o, s, candidates, since), Setup: f.setup(o, candidates), Since: f.since(o), Way: o.way(),
		Target: f.target(o), Started: f.started(o, candidates, since), Elsewhere: f.elsewhere(o, candidates, since),
		Extension: f.extension(o, candidates), Twin: f.twin(o, candidates),
	}
	if out.Started == StartedLately && out.Elsewhere == ObstacleNone { // the start is long enough ago to be known by then
		out.Started = StartedLong
	}
	out.Reach, out.Obstacle = f.reachOf(o, s, candidates)
	if out.Obstacle != ObstacleNone {
		return out
	}
	for _, c := range candidates {
		out.Before = stronger(out.Before, f.obstacleBefore(o.op.Server, c.Server, window{since, o.op.End}))
		if c.Server != o.op.Server {
			out.Before = stronger(out.Before, f.etcdObstacle(c.Server, window{since, o.op.End}))
			out.Before = stronger(out.Before, f.etcdObstacle(o.op.Server, window{since, o.op.End})) // it finds its peers there
		}
	}
	if out.Mechanism == MechanismDiscovery { // every server takes part in it
		out.Before = f.anyObstacle(window{since, o.op.End})
		for _, s := range f.servers {
			out.Before = stronger(out.Before, f.etcdObstacle(s.name, window{since, o.op.End}))
		}
	}
	return out
}

// mechanism is the part of the proxy that the request tests. An error response says nothing about a
// later part, such as a watch or an upgrade.
func (f *Facts) mechanism(o *observation) Mechanism {
	switch m := f.requested(o); {
	case m == MechanismUpgrade && o.op.Status == http.StatusUnauthorized: // upgrades transmit identities in their own way
		return m
	case (m == MechanismWatch || m == MechanismUpgrade) && o.op.Status >= http.StatusBadRequest:
		return MechanismResource
	default:
		return m
	}
}

// requested is the part of the proxy that the request tests, whatever the answer is.
func (f *Facts) requested(o *observation) Mechanism {
	switch op := o.op; {
	case op.Verb == history.VerbDiscovery && op.GVR == history.GVR{}:
		return MechanismDiscovery
	case op.GVR != history.GVR{} && op.GVR.Resource == "":
		return MechanismGroupDocument
	case op.Verb == history.VerbNoPeer:
		return MechanismOwnDiscovery
	case op.Verb == history.VerbLegacy:
		return MechanismLegacy
	case op.Verb == history.VerbOpenAPI:
		return MechanismOpenAPI
	case op.Rerouted:
		return MechanismForgedHop
	case op.Subresource != "" && f.resource(key{GVR: op.GVR}).during(o.asked, o.window).claim == claimYes:
		return MechanismSubresource
	case op.AsksForUpgrade():
		return MechanismUpgrade
	case op.Verb == "watch":
		return MechanismWatch
	}
	return MechanismResource
}

// role compares versions. A server that emulates an older minor version counts as having that one.
// Among servers of one minor version the release counts: emulation hides no subresources, so a
// newer release serves more than the version that it emulates.
func (f *Facts) role(o *observation, candidates []Candidate) Role {
	asked := o.asked.line.at(o.op.Start)
	role := RoleNone
	for _, c := range candidates {
		if c.Server == o.op.Server {
			return RoleItself
		}
		other := f.byName[c.Server].line.at(o.op.Start)
		if !semver.IsValid(asked.behaves()) || !semver.IsValid(other.behaves()) {
			return RoleNone
		}
		one := map[int]Role{-1: RoleOlder, 0: RoleSame, 1: RoleNewer}[cmp.Or(
			semver.Compare(semver.MajorMinor(asked.behaves()), semver.MajorMinor(other.behaves())),
			semver.Compare(asked.version, other.version))]
		if role != RoleNone && role != one {
			return RoleMixed
		}
		role = one
	}
	return role
}

// behaves is the version that the process behaves like, without build metadata.
func (s span) behaves() string {
	if s.emulates != "" {
		return "v" + strings.TrimPrefix(s.emulates, "v")
	}
	return s.version
}

// answerKind is the status of a response and its subject.
func answerKind(op *history.Operation) string {
	switch {
	case op.Status == 0:
		return "no answer (" + cmp.Or(string(op.Failure), "unknown") + ")"
	case op.Failure != history.FailureNone:
		return fmt.Sprintf("%d, broken off (%s)", op.Status, op.Failure)
	case op.Status == http.StatusNotFound && op.Missing != history.MissingNothing:
		return "404 " + string(op.Missing)
	case op.Status == http.StatusNotModified: // the client has that document
		return "200"
	case op.Status == http.StatusServiceUnavailable:
		return "503" + upstreamsReason(op)
	default:
		return fmt.Sprint(op.Status)
	}
}

// upstreamsReason distinguishes by upstream's own words why upstream's proxy answers 503. It is ""
// for any other 503. Source: k8s.io/apiserver, pkg/util/peerproxy, WrapHandler and responder.Error.
func upstreamsReason(op *history.Operation) string {
	switch {
	case strings.HasPrefix(op.Message, "Error getting ip and port info"):
		return " no address"
	case strings.HasPrefix(op.Message, "error trying to reach service"):
		return " no connection"
	case op.AsksForUpgrade() && op.Body == history.BodyText: // the unchanged error of the transport
		return " no connection"
	default:
		return ""
	}
}

func (f *Facts) reachOf(o *observation, s situation, candidates []Candidate) (Reach, Obstacle) {
	reachable, draining, closed, others := 0, 0, 0, 0
	obstacle := ObstacleNone
	for _, c := range candidates {
		if c.Server == o.op.Server {
			return ReachNobody, ObstacleNone
		}
		others++
		w := f.untilBound(o)
		kept := ObstacleNone
		if !c.Reachable {
			kept = f.obstacle(o, c.Server, w)
		}
		if kept == ObstacleNone {
			reachable++
			if f.drains(c.Server, w) {
				draining++
			}
			continue
		}
		until := window{w.from, max(w.from, w.to-1)} // a fault may end together with the run and so with the answer
		if _, blocks := f.inTheWay(o.op.Server, c.Server, w.widen(settle)); covers(blocks, until) {
			closed++
		}
		obstacle = stronger(obstacle, kept)
	}
	if draining > 0 && draining == reachable { // no other server could be asked
		obstacle = stronger(obstacle, ObstacleDraining)
	}
	switch {
	case others == 0 && len(s.lost) > 0:
		return ReachLost, ObstacleProcess
	case others == 0:
		return ReachNobody, ObstacleNone
	case reachable == others && (len(s.lost) > 0 || slices.ContainsFunc(s.unsure, func(u *server) bool { // u may be asked as well
		return f.processObstacle(u.name, o.window, func(s span) bool { return s.phase != phaseReady }) != ObstacleNone
	})):
		return ReachSome, ObstacleProcess
	case reachable == others:
		return ReachAll, obstacle
	case reachable > 0:
		return ReachSome, obstacle
	case closed < others:
		return ReachPart, obstacle
	default:
		return ReachNone, obstacle
	}
}
