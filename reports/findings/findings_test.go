package findings

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/scenarios"
)

func TestEveryFileSaysWhatPeopleAskFor(t *testing.T) {
	if len(All()) < 23 {
		t.Fatalf("%d findings", len(All()))
	}
	private := []int{23, 40} // until a released version has a fix
	for i, f := range All() {
		if i > 0 && f.Number <= All()[i-1].Number {
			t.Errorf("finding %d follows %d: numbers are given once", f.Number, All()[i-1].Number)
		}
		if slices.Contains(private, f.Number) != (f.Disclosure == PrivateFirst) {
			t.Errorf("finding %d is %s", f.Number, f.Disclosure)
		}
		if f.Disclosure != PrivateFirst && (f.Impact == "" || f.Versions == "" || f.Cause == "" || f.Confirmed == "" || f.Reproduce == "" || len(f.Upstream) == 0) {
			t.Errorf("finding %d has no impact, versions, cause, confirmation, command or place upstream: %+v", f.Number, f)
		}
		if (f.Avoid != "") != (f.Disclosure == Public) || f.Disclosure == Undecided {
			t.Errorf("finding %d is %s, and says of how to avoid it: %q", f.Number, f.Disclosure, f.Avoid)
		}
		if (len(f.Matches) == 0) != (f.Disclosure == Withdrawn) {
			t.Errorf("finding %d is %s, and has %d matches", f.Number, f.Disclosure, len(f.Matches))
		}
		for _, name := range f.Scenarios {
			if _, err := scenarios.Find(name); err != nil {
				t.Errorf("finding %d: %v", f.Number, err)
			}
		}
		for _, name := range f.Switches {
			at := reflect.ValueOf(proxy.Policy{})
			for _, field := range strings.Split(name, ".") {
				if at = at.FieldByName(field); !at.IsValid() {
					t.Errorf("finding %d: there is no switch %s", f.Number, name)
					break
				}
			}
		}
	}
}

// The test tries signatures that a finding explains, and similar ones that it must not explain.
func TestPredicatesAreNarrow(t *testing.T) {
	const notFound, unavailable = "NoFalseNotFound", "UnavailableOnPeerFailure"
	const unread = "servers: could not read discovery"
	const neverSettles = "a workload does not stop producing objects, from which a server drops fields of the template that another version stores"
	const otherAnswers = "401 where servers give this user other answers at that time"
	type change func(*invariant.Signature)
	whole := invariant.Signature{
		Invariant: notFound, Mechanism: invariant.MechanismResource, Roles: invariant.RoleOlder, Answer: "404 resource",
		Way: invariant.WayAnswered, Reach: invariant.ReachAll,
	}
	document := invariant.Signature{
		Invariant: "DiscoveryComplete", Mechanism: invariant.MechanismDiscovery, Answer: "200", Way: invariant.WayAnswered,
		Wrong: "/apis lacks what is served",
	}
	const deleted = "an object was deleted whose owner exists"
	misled := invariant.Signature{
		Invariant: "NoWrongfulDeletion", Mechanism: invariant.MechanismResource, Roles: invariant.RoleOlder, Answer: "404 resource",
		Way:   invariant.WayAnswered,
		Reach: invariant.ReachAll, Wrong: deleted,
	}
	blind := invariant.Signature{
		Invariant: "NothingLeftBehind", Mechanism: invariant.MechanismController, Roles: invariant.RoleOlder, Reach: invariant.ReachAll,
		Wrong: "an object stayed when its namespace was gone",
	}
	leaks := invariant.Signature{
		Invariant: "OrphansCollected", Mechanism: invariant.MechanismController, Roles: invariant.RoleOlder, Reach: invariant.ReachAll,
		Wrong: "an orphan was not collected",
	}
	unmigrated := invariant.Signature{
		Invariant: "MigrationsSucceed", Mechanism: invariant.MechanismGroupDocument, Roles: invariant.RoleOlder, Reach: invariant.ReachAll,
		Wrong: "a migration did not succeed",
	}
	uninformed := invariant.Signature{
		Invariant: "NoLostEvents", Mechanism: invariant.MechanismInformer, Roles: invariant.RoleOlder, Reach: invariant.ReachAll,
		Wrong: "an event did not come in time",
	}
	growing := invariant.Signature{
		Invariant: "Settles", Mechanism: invariant.MechanismController, Roles: invariant.RoleItself, Wrong: neverSettles,
	}
	const dropsInSilence = "a field that another version stores was dropped in silence"
	flags := invariant.Signature{Invariant: "ConfigurationTakesEffect", Mechanism: invariant.MechanismConfiguration}
	with := func(s invariant.Signature, changes ...change) invariant.Signature {
		for _, c := range changes {
			c(&s)
		}
		return s
	}
	var (
		subresource = func(s *invariant.Signature) { s.Mechanism = invariant.MechanismSubresource }
		unlisted    = func(s *invariant.Signature) { s.Mechanism = invariant.MechanismDiscovery }
		upgraded    = func(s *invariant.Signature) { s.Mechanism = invariant.MechanismUpgrade }
		itself      = func(s *invariant.Signature) { s.Roles, s.Reach = invariant.RoleItself, invariant.ReachNobody }
		nobody      = func(s *invariant.Signature) { s.Roles, s.Reach = invariant.RoleNone, invariant.ReachNobody }
		passedOn    = func(s *invariant.Signature) { s.Way = invariant.WayPassedOn }
		same        = func(s *invariant.Signature) { s.Roles = invariant.RoleSame }
		forged      = func(s *invariant.Signature) { s.Mechanism = invariant.MechanismForgedHop }
		status      = func(text string) change { return func(s *invariant.Signature) { s.Answer = text } }
		changed     = func(c invariant.Change) change { return func(s *invariant.Signature) { s.Change = c } }
		target      = func(of invariant.Target) change { return func(s *invariant.Signature) { s.Target = of } }
		started     = func(ago invariant.Started) change { return func(s *invariant.Signature) { s.Started = ago } }
		elsewhere   = func(o invariant.Obstacle) change { return func(s *invariant.Signature) { s.Elsewhere = o } }
		newer       = func(s *invariant.Signature) { s.Roles = invariant.RoleNewer }
		extension   = func(e invariant.Extension) change { return func(s *invariant.Signature) { s.Extension = e } }
		twin        = func(of invariant.Twin) change { return func(s *invariant.Signature) { s.Twin = of } }
		setUp       = func(text string) change { return func(s *invariant.Signature) { s.Setup = text } }
		of          = func(name string) change { return func(s *invariant.Signature) { s.Invariant = name } }
		wrong       = func(text string) change { return func(s *invariant.Signature) { s.Wrong = text } }
		before      = func(o invariant.Obstacle) change { return func(s *invariant.Signature) { s.Before = o } }
		reach       = func(r invariant.Reach, o invariant.Obstacle) change {
			return func(s *invariant.Signature) { s.Reach, s.Obstacle = r, o }
		}
		cut      = reach(invariant.ReachNone, invariant.ObstacleLink)
		wrongCA  = reach(invariant.ReachNone, invariant.ObstacleConfiguration)
		whole404 = func(s *invariant.Signature) {
			s.Mechanism, s.Answer, s.Way = invariant.MechanismResource, "404 resource", invariant.WayAnswered
		}
	)
	for _, c := range []struct {
		name    string
		finding int // 0: NEW
		s       invariant.Signature
	}{
		{"a whole resource, without any reason", 0, whole},
		{"a whole resource, after a restart", 0, with(whole, changed(invariant.ChangeOther))},
		{"a whole resource, while the link is cut", 0, with(whole, cut)},
		{"404 while it is cut, after another server restarted", 1, with(whole, cut, changed(invariant.ChangeOther))},
		{"404 once it is whole again", 1, with(whole, before(invariant.ObstacleLink), changed(invariant.ChangeOther))},
		{"the same for 503", 1, with(whole, cut, of(unavailable), wrong("404 rather than 503"), changed(invariant.ChangeOther))},
		{"the same, said by a peer that served it before it restarted", 22,
			with(whole, cut, passedOn, target(invariant.TargetRestarted), changed(invariant.ChangeOther))},
		{"said by a peer without the subresource", 22, with(whole, subresource, passedOn, target(invariant.TargetPart))},
		{"404 while it is cut, after an identity lease was deleted", 1, with(whole, cut, changed(invariant.ChangeLease))},
		{"404 after an identity lease was deleted", 0, with(whole, changed(invariant.ChangeLease))},
		{"said by a peer that serves it", 0, with(whole, passedOn, target(invariant.TargetServes), changed(invariant.ChangeOther))},
		{"said by a peer that never served it", 0, with(whole, passedOn, target(invariant.TargetNever), changed(invariant.ChangeCapable))},
		{"404 while it and another are out of reach", 1, with(whole, cut, elsewhere(invariant.ObstacleProcess))},
		{"404 while another is out of reach", 0, with(whole, elsewhere(invariant.ObstacleProcess))},
		{"404 for a peer without etcd, after another server restarted", 1,
			with(whole, before(invariant.ObstacleEtcd), changed(invariant.ChangeOther))},
		{"404 for a peer without etcd", 0, with(whole, before(invariant.ObstacleEtcd))},
		{"404 while the peer serves on though it was told to stop", 44,
			with(whole, reach(invariant.ReachAll, invariant.ObstacleDraining), changed(invariant.ChangeCapable))},
		{"503 then, because its address is gone", 44,
			with(whole, of("Available"), status("503 no address"), reach(invariant.ReachAll, invariant.ObstacleDraining))},
		{"404 then, while its link is cut", 44,
			with(whole, reach(invariant.ReachNone, invariant.ObstacleDraining), of(unavailable), wrong("404 rather than 503"))},
		{"a controller that deletes after it", 44, with(misled, reach(invariant.ReachAll, invariant.ObstacleDraining))},
		{"a controller that loses an object then, and no answer says why", 0, with(blind, reach(invariant.ReachAll, invariant.ObstacleDraining))},
		{"a controller that loses an object then, because a document lacked its kind", 44,
			with(blind, reach(invariant.ReachAll, invariant.ObstacleDraining), unlisted)},
		{"a controller that loses an object because of such a document, for no known reason", 0, with(blind, unlisted)},
		{"404 then, said by a peer", 0, with(whole, reach(invariant.ReachAll, invariant.ObstacleDraining), passedOn)},
		{"503 then, although its address is known", 0,
			with(whole, of("Available"), status("503 no connection"), reach(invariant.ReachAll, invariant.ObstacleDraining))},
		{"503 without an address while the peer is ready", 0, with(whole, of("Available"), status("503 no address"))},
		{"a controller that deletes after such a 404", 1, with(misled, cut, changed(invariant.ChangeOther))},
		{"a controller that deletes after a 404 without a reason", 0, misled},
		{"a controller that deletes after a 404 while the link is cut", 0, with(misled, cut)},
		{"a controller that deletes after 500", 0, with(misled, cut, changed(invariant.ChangeOther), status("500"))},
		{"a controller that deletes after a peer's 404", 0, with(misled, cut, changed(invariant.ChangeOther), passedOn)},
		{"a controller that deletes, and no wrong answer", 1, with(misled, func(s *invariant.Signature) { s.Mechanism, s.Answer, s.Way = invariant.MechanismController, "", "" }, cut, changed(invariant.ChangeOther))},
		{"a controller that leaves an object behind", 1, with(blind, cut, changed(invariant.ChangeOther))},
		{"a controller that leaves an object behind without a reason", 0, blind},
		{"a controller that leaves an object of a misconfigured peer behind", 13,
			with(blind, reach(invariant.ReachNone, invariant.ObstacleConfiguration))},
		{"a controller that deletes after a 404 for a misconfigured peer", 13,
			with(misled, reach(invariant.ReachNone, invariant.ObstacleConfiguration))},
		{"a controller that deletes after 500 for a misconfigured peer", 0,
			with(misled, reach(invariant.ReachNone, invariant.ObstacleConfiguration), status("500"))},
		{"a controller that leaks the dependents of a misconfigured peer's owner", 13, with(leaks, wrongCA)},
		{"a controller that leaks them while the link is cut, after another server restarted", 1,
			with(leaks, cut, changed(invariant.ChangeOther))},
		{"a controller that leaks them after the asked server restarted", 6, with(leaks, cut, changed(invariant.ChangeAsked))},
		{"a controller that leaks them while the link is cut", 0, with(leaks, cut)},
		{"a controller that leaks them after another server restarted", 0, with(leaks, changed(invariant.ChangeOther))},
		{"a controller that leaks them with an unusual setup", 0,
			with(leaks, cut, changed(invariant.ChangeOther), setUp("asked server: with the flags of kubeadm"))},
		{"a migration whose controller got a document without the kind", 17, unmigrated},
		{"a migration that does not succeed, and nobody knows why", 0, with(unmigrated, func(s *invariant.Signature) { s.Mechanism = invariant.MechanismController })},
		{"a migration that fails while the link is cut", 0, with(unmigrated, cut)},
		{"a migration that fails with an unusual setup", 0, with(unmigrated, setUp("asked server: with the flags of kubeadm"))},
		{"an informer that a server has refused since the link was cut", 1,
			with(uninformed, status("404 resource"), changed(invariant.ChangeOther), before(invariant.ObstacleLink))},
		{"an informer that a server has refused since then, with an unusual setup", 0, with(uninformed, status("404 resource"),
			changed(invariant.ChangeOther), before(invariant.ObstacleLink), setUp("asked server: with the flags of kubeadm"))},
		{"an informer that gets 503", 0, with(uninformed, status("503 no connection"), changed(invariant.ChangeOther),
			before(invariant.ObstacleLink))},
		{"an informer that is not refused", 0, with(uninformed, changed(invariant.ChangeOther), before(invariant.ObstacleLink))},
		{"an informer that is refused without a cut", 0, with(uninformed, status("404 resource"), changed(invariant.ChangeOther))},
		{"an informer that is refused without a restart", 0, with(uninformed, status("404 resource"), before(invariant.ObstacleLink))},
		{"an informer that is refused, and loses an event", 0,
			with(uninformed, status("404 resource"), changed(invariant.ChangeOther), before(invariant.ObstacleLink), wrong("an event was lost"))},
		{"a controller that leaks them, and nobody knows what it was told", 0,
			invariant.Signature{Invariant: "OrphansCollected", Mechanism: invariant.MechanismController, Wrong: "an orphan was not collected"}},
		{"a controller that leaks them and was passed on", 0, with(leaks, wrongCA, passedOn)},
		{"a controller that was told 503", 0, with(leaks, wrongCA, status("503 no connection"))},
		{"something else is wrong with an orphan", 0, with(leaks, wrongCA, wrong("an orphan was collected late"))},
		{"a deletion that does not end", 13, with(leaks, of("DeletionEnds"), wrong("a deletion did not end"), wrongCA)},
		{"a deletion that does not end, by 404", 1,
			with(leaks, of("DeletionEnds"), wrong("a deletion did not end"), whole404, cut, changed(invariant.ChangeOther))},
		{"a namespace that stays and does not say why", 13,
			with(leaks, of("DeletionEnds"), wrong("the deletion of a namespace did not end, and its conditions do not say why"), wrongCA)},
		{"a quota that does not follow", 1, with(leaks, of("QuotaFollows"), wrong("a quota does not say how many objects there are"), cut,
			changed(invariant.ChangeCapable))},
		{"a quota that does not follow, without a reason", 0,
			with(leaks, of("QuotaFollows"), wrong("a quota does not say how many objects there are"))},
		{"a namespace that is emptied in part after the asked server restarted", 6, with(blind, cut, changed(invariant.ChangeAsked))},
		{"the same with 500", 0, with(whole, cut, status("500"), changed(invariant.ChangeOther))},
		{"merged discovery forgets likewise", 1, with(document, before(invariant.ObstacleLink), changed(invariant.ChangeOther))},
		{"merged discovery forgets without a reason", 0, document},
		{"merged discovery lists too much", 0,
			with(document, before(invariant.ObstacleLink), wrong("/apis lists what no server serves"), changed(invariant.ChangeOther))},
		{"a subresource", 2, with(whole, subresource)},
		{"a subresource that the server itself has", 0, with(whole, subresource, itself)},
		{"a subresource denied by the peer that has it", 0, with(whole, subresource, passedOn)},
		{"a subresource between servers of one version", 0, with(whole, subresource, same)},
		{"a subresource with 500", 0, with(whole, subresource, status("500"))},
		{"a subresource whose object is denied", 0, with(whole, subresource, status("404 object"))},
		{"503 though another peer is there", 3,
			with(whole, of("Available"), status("503 no connection"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"503 from a peer that is out of reach", 3, with(whole, of("Available"), passedOn, target(invariant.TargetOutOfReach),
			status("503 no connection"), reach(invariant.ReachSome, invariant.ObstacleLink))},
		{"503 from a peer that is there", 0, with(whole, of("Available"), passedOn, target(invariant.TargetServes), status("503 no connection"),
			reach(invariant.ReachSome, invariant.ObstacleLink))},
		{"503 for a reason of its own", 0, with(whole, of("Available"), status("503"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"503 though all are there", 0, with(whole, of("Available"), status("503 no connection"))},
		{"503 though all are there, and another server has just left", 3,
			with(whole, of("Available"), status("503 no connection"), changed(invariant.ChangeOther))},
		{"the same, for a reason of its own", 0, with(whole, of("Available"), status("503"), changed(invariant.ChangeOther))},
		{"503 though all are there, and the server that serves it has restarted", 0,
			with(whole, of("Available"), status("503 no connection"), changed(invariant.ChangeCapable))},
		{"503 for want of an address, though another peer is there", 35,
			with(whole, of("Available"), status("503 no address"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"503 for want of an address of one that has left, after another one's restart, while a third is out of reach", 35,
			with(whole, of("Available"), status("503 no address"), changed(invariant.ChangeCapable), started(invariant.StartedLately), elsewhere(invariant.ObstacleLink))},
		{"503 for want of an address after a restart, though all are there", 0,
			with(whole, of("Available"), status("503 no address"), changed(invariant.ChangeCapable), started(invariant.StartedLately))},
		{"503 for want of an address, though all are there", 0, with(whole, of("Available"), status("503 no address"))},
		{"500 from a peer without etcd", 36, with(whole, of("Available"), passedOn, target(invariant.TargetNoEtcd), status("500"))},
		{"500 from a peer with etcd", 0, with(whole, of("Available"), passedOn, target(invariant.TargetServes), status("500"))},
		{"an answer that breaks off at its beginning", 37,
			with(whole, of("Available"), status("no answer (reset)"), reach(invariant.ReachSome, invariant.ObstacleLink))},
		{"an answer that breaks off, of a peer that could not serve it", 37, with(whole, of(unavailable), status("no answer (reset)"),
			wrong("connection broken rather than 503"), reach(invariant.ReachNone, invariant.ObstacleProcess), elsewhere(invariant.ObstacleLink))},
		{"a broken connection though no link is disturbed", 0, with(whole, of(unavailable), status("no answer (reset)"),
			wrong("connection broken rather than 503"), reach(invariant.ReachNone, invariant.ObstacleProcess))},
		{"a broken connection without a fault", 0, with(whole, of("Available"), status("no answer (reset)"))},
		{"no answer in time though another peer is there", 4,
			with(whole, of("Available"), status("no answer (timeout)"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"no answer in time though all are there", 0, with(whole, of("Available"), status("no answer (timeout)"))},
		{"500 though another peer is there", 0,
			with(whole, of("Available"), status("500"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"no answer from a peer that stands still", 4, with(whole, of(unavailable), wrong("no answer in time"), status("no answer (timeout)"),
			reach(invariant.ReachNone, invariant.ObstacleProcess))},
		{"the same, for a header that this server does not know", 4, with(whole, forged, of(unavailable), wrong("no answer in time"),
			status("no answer (timeout)"), reach(invariant.ReachNone, invariant.ObstacleProcess))},
		{"the same, though a peer could be reached", 0, with(whole, forged, of(unavailable), wrong("no answer in time"),
			status("no answer (timeout)"), reach(invariant.ReachSome, invariant.ObstacleProcess))},
		{"500 from a peer that stands still", 0,
			with(whole, of(unavailable), wrong("500 rather than 503"), status("500"), reach(invariant.ReachNone, invariant.ObstacleProcess))},
		{"a crash of v1.34", 5, invariant.Signature{Invariant: "NoCrash", Mechanism: invariant.MechanismProcess, Wrong: "crashed",
			Setup: "asked server: proxy of v1.34"}},
		{"a crash of a newer version", 0, invariant.Signature{Invariant: "NoCrash", Mechanism: invariant.MechanismProcess, Wrong: "crashed"}},
		{"404 while it is cut, after the server itself restarted", 6, with(whole, cut, changed(invariant.ChangeAsked))},
		{"the order of groups", 7, with(document, of("DiscoveryDeterministic"),
			wrong("/apis: same resources in another order at the same time"))},
		{"other bytes", 0, with(document, of("DiscoveryDeterministic"), wrong("/apis: same resources, other bytes at the same time"))},
		{"v1.34 gives up", 8, with(whole, setUp("asked server: proxy of v1.34"), changed(invariant.ChangeCapable))},
		{"a newer version gives up", 0, with(whole, changed(invariant.ChangeCapable))},
		{"a document that broke off", 9, with(whole, reach(invariant.ReachPart, invariant.ObstacleBrokenOff))},
		{"a document that failed", 11, with(whole, reach(invariant.ReachPart, invariant.ObstacleDiscovery))},
		{"the flags of kubeadm", 12, with(whole, setUp("asked server: with the flags of kubeadm"))},
		{"a wrong certificate", 13, with(whole, reach(invariant.ReachNone, invariant.ObstacleConfiguration))},
		{"503 is right with a wrong certificate; 500 is not known", 0,
			with(whole, status("500"), reach(invariant.ReachNone, invariant.ObstacleConfiguration))},
		{"the proxy of the peer is off", 14, with(whole, reach(invariant.ReachNone, invariant.ObstacleProxyOff))},
		{"the asked server has the host name of the serving one", 15, with(whole, twin(invariant.TwinAsked))},
		{"another server has it", 15, with(whole, twin(invariant.TwinServing))},
		{"it has it, and is asked", 15, with(whole, passedOn, target(invariant.TargetNever), twin(invariant.TwinTarget))},
		{"it has it, and serves it", 0, with(whole, passedOn, target(invariant.TargetServes), twin(invariant.TwinTarget))},
		{"it has it, and a third is asked", 0, with(whole, passedOn, target(invariant.TargetNever), twin(invariant.TwinServing))},
		{"a server that could not have served it has a host name twice", 0, with(whole, setUp("asked server: with the host name of another server"))},
		{"503 while another server has the host name", 0, with(whole, of("Available"), status("503 no address"), twin(invariant.TwinServing))},
		{"merged discovery, while another server has the host name", 15, with(document, twin(invariant.TwinServing))},
		{"its lease is gone, and nobody has its host name", 0, with(flags, wrong("no address in its lease"))},
		{"its lease is gone with another server of its host name", 15, with(flags, wrong("no address in its lease"), twin(invariant.TwinAsked))},
		{"another address is there, and another server has its host name", 0,
			with(flags, wrong("its lease contradicts --peer-advertise-ip"), twin(invariant.TwinAsked))},
		{"a forged hop header", 16, with(whole, forged)},
		{"a forged hop header that makes a server fail", 0, with(whole, forged, of("Available"), status("500"))},
		{"a group document", 17, with(document, of("GroupVersionsDescribed"), func(s *invariant.Signature) {
			s.Mechanism, s.Answer, s.Wrong = invariant.MechanismGroupDocument, "404", ""
		})},
		{"what was deleted comes back", 18, with(document, wrong("/apis lists what no server serves"), changed(invariant.ChangeDeletion))},
		{"a version that comes back stands in the wrong place", 18,
			with(document, of("VersionOrder"), wrong("versions of a group out of order"), changed(invariant.ChangeDeletion))},
		{"versions out of order without a deletion", 0, with(document, of("VersionOrder"), wrong("versions of a group out of order"))},
		{"versions out of order by those of a definition", 39, with(document, of("VersionOrder"), wrong("versions of a group out of order"), extension(invariant.ExtensionOrder))},
		{"the same after something else was deleted", 39, with(document, of("VersionOrder"), wrong("versions of a group out of order"), changed(invariant.ChangeDeletion), extension(invariant.ExtensionOrder))},
		{"versions out of order, with a definition in a version that is missing", 0, with(document, of("VersionOrder"), wrong("versions of a group out of order"), extension(invariant.ExtensionVersion))},
		{"a refused upgrade that the asked server logged as accepted", 42, with(whole, func(s *invariant.Signature) { s.Mechanism = invariant.MechanismUpgrade },
			of("AuditedAlike"), passedOn, status("401"), wrong("101 in the log of the asked server"))},
		{"a refused upgrade that the asked server logged otherwise", 0, with(whole, func(s *invariant.Signature) { s.Mechanism = invariant.MechanismUpgrade },
			of("AuditedAlike"), passedOn, status("401"), wrong("another status in the log of the asked server"))},
		{"another status in the log of the peer", 0, with(whole, func(s *invariant.Signature) { s.Mechanism = invariant.MechanismUpgrade },
			of("AuditedAlike"), passedOn, status("401"), wrong("another status in the log of the peer"))},
		{"503 for an aggregated API that distrusts a server", 43,
			with(whole, of("Available"), itself, status("503"), extension(invariant.ExtensionDistrusts))},
		{"the same, of its group document", 43, with(whole, func(s *invariant.Signature) { s.Mechanism = invariant.MechanismGroupDocument },
			of("Available"), itself, status("503"), extension(invariant.ExtensionDistrusts))},
		{"503 for an aggregated API that trusts all servers", 0, with(whole, of("Available"), itself, status("503"))},
		{"500 for an aggregated API that distrusts a server", 0,
			with(whole, of("Available"), itself, status("500"), extension(invariant.ExtensionDistrusts))},
		{"404 for it", 0, with(whole, itself, extension(invariant.ExtensionDistrusts))},
		{"503 for it, of a server that does not serve it", 0, with(whole, of("Available"), status("503"), extension(invariant.ExtensionDistrusts))},
		{"503 for it, passed on", 0, with(whole, of("Available"), itself, passedOn, status("503"), extension(invariant.ExtensionDistrusts))},
		{"101 in the log, of a request without an upgrade", 0,
			with(whole, of("AuditedAlike"), passedOn, status("401"), wrong("101 in the log of the asked server"))},
		{"a wait beside watches", 40, with(whole, of("Isolation"), status("200"), wrong("waited beside watches"))},
		{"429 beside watches", 40, with(whole, of("Isolation"), status("429"), wrong("throttled beside watches"))},
		{"a wait beside watches, only if passed on", 0, with(whole, of("Isolation"), status("200"), wrong("waited beside watches, only if passed on"))},
		{"a failure beside watches", 0, with(whole, of("Isolation"), status("503"), wrong("failed beside watches"))},
		{"a workload that never settles", 47, growing},
		{"and no version drops a field of it", 0, with(growing, wrong("a workload does not stop producing objects"))},
		{"a field is dropped in silence", 47, with(whole, of("NoFieldLost"), itself, status("201"), wrong(dropsInSilence))},
		{"by a peer", 0, with(whole, of("NoFieldLost"), passedOn, status("201"), wrong(dropsInSilence))},
		{"a field is lost", 0, with(whole, of("NoFieldLost"), itself, status("201"), wrong("a field was lost"))},
		{"something comes that was never there", 0, with(document, wrong("/apis lists what no server serves"))},
		{"refused by a peer that starts", 20, with(whole, of("AuthorizedAlike"), passedOn, status("403"),
			wrong("refused what another server allowed"), changed(invariant.ChangeCapable))},
		{"refused by a peer that starts, while another one could have answered", 20, with(whole, of("AuthorizedAlike"), passedOn,
			target(invariant.TargetRestarted), status("403"), wrong("refused what another server allowed"), changed(invariant.ChangeOther))},
		{"refused by a peer that served it all the time, after another server restarted", 0, with(whole, of("AuthorizedAlike"), passedOn,
			target(invariant.TargetServes), status("403"), wrong("refused what another server allowed"), changed(invariant.ChangeOther))},
		{"refused by a peer that runs", 0, with(whole, of("AuthorizedAlike"), passedOn, status("403"),
			wrong("refused what another server allowed"))},
		{"a node is refused by the asked server", 46, with(whole, of("AuthorizedAlike"), status("403"),
			wrong("a node was refused by the rules of its server's version"))},
		{"a node is refused by the asked server, whose version permits it", 0, with(whole, of("AuthorizedAlike"), status("403"),
			wrong("refused what another server allowed"))},
		{"a user is refused by the asked server", 0, with(whole, of("AuthorizedAlike"), status("403"), wrong("refused what another server allowed"))},
		{"a much newer server stores what it cannot read", 48, with(whole, of("Converges"), passedOn, target(invariant.TargetUnreadable), status("500"))},
		{"the same, and it denies it", 0, with(whole, of("NoFalseNotFound"), passedOn, target(invariant.TargetUnreadable), status("404"))},
		{"servers cannot read discovery", 45, with(whole, changed(invariant.ChangeAsked), setUp(unread))},
		{"servers cannot read discovery, and one is set up oddly", 45, with(whole, setUp("asked server: with a hat; "+unread))},
		{"servers cannot read discovery, and merged discovery lacks something", 45, with(document, setUp(unread))},
		{"servers cannot read discovery, and merged discovery lists too much", 0,
			with(document, wrong("/apis lists what no server serves"), setUp(unread))},
		{"servers cannot read discovery, and a peer answers 404", 0, with(whole, passedOn, target(invariant.TargetServes), setUp(unread))},
		{"servers cannot read discovery, and pass nothing on", 45, with(flags, wrong("passes nothing on with the feature on"), setUp(unread))},
		{"it goes round, of what was deleted", 23, with(whole, of("NoLoop"), passedOn, wrong("came back"), changed(invariant.ChangeDeletion))},
		{"it goes round", 0, with(whole, of("NoLoop"), passedOn, wrong("came back"))},
		{"an upgrade without a user", 25, with(whole, of("AnsweredAlike"), upgraded, passedOn, status("401"), wrong(otherAnswers))},
		{"the same of a request without an upgrade", 0, with(whole, of("AnsweredAlike"), passedOn, status("401"), wrong(otherAnswers))},
		{"an upgrade that the asked server refuses", 0, with(whole, of("AnsweredAlike"), upgraded, status("401"), wrong(otherAnswers))},
		{"an upgrade that is answered plainly", 0,
			with(whole, of("AnsweredAlike"), upgraded, passedOn, status("200"), wrong("200 where servers that serve it answer 101"))},
		{"half an address has no effect", 30, with(flags, wrong("its lease contradicts --peer-advertise-ip"),
			setUp("asked server: advertising an address and no port"))},
		{"the other half", 30, with(flags, wrong("its lease contradicts --peer-advertise-port"),
			setUp("asked server: advertising a port and no address"))},
		{"a whole address has no effect", 0, with(flags, wrong("its lease contradicts --peer-advertise-ip"))},
		{"the address is wrong where only the port was given", 0,
			with(flags, wrong("its lease contradicts --advertise-address"), setUp("asked server: advertising a port and no address"))},
		{"no address with half of one", 0, with(flags, wrong("no address in its lease"),
			setUp("asked server: advertising an address and no port"))},
		{"the feature has no effect with kubeadm's flags", 12,
			with(flags, wrong("passes nothing on with the feature on"), setUp("asked server: with the flags of kubeadm"))},
		{"the feature has no effect with all flags", 0, with(flags, wrong("passes nothing on with the feature on"))},
		{"no address with kubeadm's flags", 0, with(flags, wrong("no address in its lease"), setUp("asked server: with the flags of kubeadm"))},
		{"v1.34 passes nothing on", 8, with(flags, wrong("passes nothing on with the feature on"), setUp("asked server: proxy of v1.34"))},
		{"learned no later than the start took", 24, with(whole, changed(invariant.ChangeCapable), started(invariant.StartedJust))},
		{"learned later than that", 0, with(whole, changed(invariant.ChangeCapable), func(s *invariant.Signature) { s.Since = invariant.SinceRecent })},
		{"learned later than that, while another is misconfigured", 35, with(whole, changed(invariant.ChangeCapable), started(invariant.StartedLately), elsewhere(invariant.ObstacleConfiguration))},
		{"404 while another is misconfigured", 0, with(whole, elsewhere(invariant.ObstacleConfiguration))},
		{"learned later than that, while the proxy of another is off", 0, with(whole, changed(invariant.ChangeCapable), started(invariant.StartedLately), elsewhere(invariant.ObstacleProxyOff))},
		{"learned later than that, while another is out of reach", 35, with(whole, changed(invariant.ChangeCapable), started(invariant.StartedLately), elsewhere(invariant.ObstacleLink))},
		{"another is out of reach, and nothing was started", 0, with(whole, changed(invariant.ChangeOther), elsewhere(invariant.ObstacleLink))},
		{"a custom resource is in its group version", 38, with(whole, extension(invariant.ExtensionVersion))},
		{"the same of a newer server", 38, with(whole, newer, extension(invariant.ExtensionVersion))},
		{"404 rather than 503, with a custom resource in its group version", 38,
			with(whole, cut, of(unavailable), wrong("404 rather than 503"), extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and the versions are the same", 0, with(whole, same, extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and the server itself serves it", 0, with(whole, itself, extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and a peer answers 404", 0,
			with(whole, passedOn, target(invariant.TargetServes), extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and the answer is 500", 0, with(whole, status("500"), extension(invariant.ExtensionVersion))},
		{"merged discovery lacks what is beside a custom resource", 38, with(document, extension(invariant.ExtensionVersion))},
		{"/api lacks it", 0, with(document, wrong("/api lacks what is served"), extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and discovery lists too much", 0,
			with(document, wrong("/apis lists what no server serves"), extension(invariant.ExtensionVersion))},
		{"a custom resource is there, and versions are out of order", 0,
			with(document, of("VersionOrder"), wrong("versions of a group out of order"), extension(invariant.ExtensionVersion))},
		{"503 from a peer elsewhere that is out of reach", 3,
			with(whole, of("Available"), status("503 no connection"), elsewhere(invariant.ObstacleLink))},
		{"503 while the discovery of a peer elsewhere fails", 0,
			with(whole, of("Available"), status("503 no connection"), elsewhere(invariant.ObstacleDiscovery))},
		{"500 while a peer elsewhere is out of reach", 0, with(whole, of("Available"), status("500"), elsewhere(invariant.ObstacleLink))},
		{"the last server lists what the others served", 41, with(document, wrong("/apis lists what no server serves"), setUp("asked server: alone"))},
		{"and answers 404 for it", 41, with(whole, of("DiscoveryAccessible"), nobody, setUp("asked server: alone"))},
		{"the last server lacks something", 0, with(document, setUp("asked server: alone"))},
		{"the last server answers 500", 0, with(whole, of("DiscoveryAccessible"), nobody, status("500"), setUp("asked server: alone"))},
		{"404 for what is listed, with peers", 0, with(whole, of("DiscoveryAccessible"), nobody)},
		{"what was deleted comes back after a restart", 18,
			with(document, wrong("/apis lists what no server serves"), changed(invariant.ChangeOther), extension(invariant.ExtensionGone))},
		{"what was deleted comes back, and something is missing", 0,
			with(document, wrong("/apis lacks what is served"), changed(invariant.ChangeOther), extension(invariant.ExtensionGone))},
		{"an upgrade without a user, whose answer breaks off", 25,
			with(whole, of("AnsweredAlike"), upgraded, status("401, broken off (reset)"), wrong(otherAnswers))},
		{"the same of a request without an upgrade, whose answer breaks off", 0,
			with(whole, of("AnsweredAlike"), status("401, broken off (reset)"), wrong(otherAnswers))},
		{"merged discovery lacks what a server without the proxy has", 14, with(document, before(invariant.ObstacleProxyOff))},
		{"merged discovery lists too much, and a server is without the proxy", 0,
			with(document, wrong("/apis lists what no server serves"), before(invariant.ObstacleProxyOff))},
		{"404 while it is cut, after the server itself restarted, and the peer advertises nothing", 6,
			with(whole, cut, changed(invariant.ChangeAsked), setUp("serving server: advertising nothing"))},
		{"404 while it is cut, after another restarted, and the peer advertises nothing", 1,
			with(whole, cut, changed(invariant.ChangeOther), setUp("serving server: advertising nothing"))},
		{"404 after the server itself restarted, and the peer advertises nothing", 0,
			with(whole, changed(invariant.ChangeAsked), setUp("serving server: advertising nothing"))},
		{"404 while it is cut, and the peer is set up oddly", 0,
			with(whole, cut, changed(invariant.ChangeAsked), setUp("serving server: with a hat"))},
		{"404 while it is cut, and another is misconfigured", 1, with(whole, cut, elsewhere(invariant.ObstacleConfiguration))},
		{"merged discovery forgets a server without etcd", 6, with(document, before(invariant.ObstacleEtcd), changed(invariant.ChangeAsked))},
		{"the same after another server restarted", 1, with(document, before(invariant.ObstacleEtcd), changed(invariant.ChangeOther))},
		{"merged discovery lacks a server without etcd, and nothing was restarted", 0, with(document, before(invariant.ObstacleEtcd))},
		{"learned later than that, and the peer advertises nothing", 35, with(whole, changed(invariant.ChangeCapable),
			started(invariant.StartedLately), elsewhere(invariant.ObstacleLink), setUp("serving server: advertising nothing"))},
		{"learned later than that, and the peer advertises half an address", 35, with(whole, changed(invariant.ChangeCapable),
			started(invariant.StartedLately), elsewhere(invariant.ObstacleLink), setUp("serving server: advertising an address and no port"))},
		{"learned later than that, and the peer is set up oddly", 0, with(whole, changed(invariant.ChangeCapable),
			started(invariant.StartedLately), elsewhere(invariant.ObstacleLink), setUp("serving server: with a hat"))},
		{"soon after, though nothing was restarted", 0, with(whole, func(s *invariant.Signature) { s.Since = invariant.SinceRecent })},
	} {
		f, known := All().Explain(c.s)
		if known != (c.finding != 0) || f.Number != c.finding {
			t.Errorf("%s: finding %d, want %d: %s", c.name, f.Number, c.finding, c.s)
		}
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	good := `{apiVersion: skewproof/v1alpha1, kind: Finding, number: 1000, title: T, symptom: S, grade: core, disclosure: public,
		matches: [{invariants: [NoFalseNotFound], mechanisms: [subresource], answers: [404 resource]}]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"another kind":                  {"kind: Finding", "kind: Founding", `kind "Founding"`},
		"no number":                     {"number: 1000", "number: 0", "number 0"},
		"no title":                      {"title: T", "title: ''", "no title"},
		"an unknown grade":              {"grade: core", "grade: bad", `grade "bad"`},
		"an unknown disclosure":         {"disclosure: public", "disclosure: later", `disclosure "later"`},
		"an unknown invariant":          {"[NoFalseNotFound]", "[NoFalseNotfound]", `no invariant "NoFalseNotfound"`},
		"no invariant":                  {"[NoFalseNotFound]", "[]", "names no invariant"},
		"a misspelt field":              {"answers:", "anwsers:", "anwsers"},
		"a predicate without an answer": {", answers: [404 resource]", "", "too wide"},
	} {
		if _, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

// A finding that is private first says what happens, and not how to cause it.
func TestPrivateFindingsSayNothingElse(t *testing.T) {
	const private = "apiVersion: skewproof/v1alpha1\nkind: Finding\nnumber: 1000\ntitle: T\ngrade: core\ndisclosure: private first\ndemands: [G1]\n" +
		"matches: [{invariants: [NoLoop], mechanisms: [watch], wrong: [came back]}]\n"
	const three = "symptom: It ends. It was seen in v1.36.3. Do not use it.\n"
	if _, err := Parse([]byte(private + three)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"two sentences": "symptom: It ends. Do not use it.\n", "four": strings.Replace(three, "It", "Who? It", 1),
		"an impact": three + "impact: I\n", "a way to avoid it": three + "avoid: A\n", "versions": three + "versions: V\n",
		"a cause": three + "cause: C\n", "a place": three + "upstream: [U]\n", "a scenario": three + "scenarios: [quiet]\n",
		"a chance": three + "chance: C\n", "a command": three + "reproduce: R\n", "a switch": three + "switches: [S]\n",
		"how it was confirmed": three + "confirmed: C\n", "that the simulator lacks it": three + "notSimulated: true\n",
		"an upgrade": three + "upgrade: {since: '1.34', proxy: any, when: W, deleted: D, hangs: H, noticed: N, lasts: L}\n",
	} {
		if _, err := Parse([]byte(private + text)); err == nil || !strings.Contains(err.Error(), "three sentences") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("kind: Finding\nmatches: [{invariants: [NoLoop]}]"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Parse(data)
	})
}

func TestFindingsOfOnesOwn(t *testing.T) {
	const own = `apiVersion: skewproof/v1alpha1
kind: Finding
number: 1000
title: T
symptom: S
grade: core
disclosure: public
matches:
- {invariants: [NoLoop], mechanisms: [whole resource], wrong: [came back]}
`
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "own.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, err := ReadFile(write("---\n" + own + "---\n" + strings.Replace(own, "1000", "1001", 1)))
	if err != nil || len(all) != 2 || all[1].Number != 1001 {
		t.Errorf("%v, %v", all, err)
	}
	for text, want := range map[string]string{
		"":                                   "holds no finding",
		strings.Replace(own, "1000", "2", 1): "1000 or more",
		own + "---\nkind: Other\n":           "document 2",
		strings.Replace(own, "NoLoop", "Nothing", 1): `no invariant "Nothing"`,
	} {
		if _, err := ReadFile(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}

// A violation of another proxy is NEW, even if a released version has the same defect, unless the
// cause is not in the proxy. A run of another proxy is not expected to show a finding.
func TestFindingsAreOfReleasedVersions(t *testing.T) {
	for subject, all := range map[string]bool{"builtin": true, "upstream-1.36": true, "reference": false, "external": false, "none": false} {
		var numbers, want []int
		for _, f := range For(subject) {
			numbers = append(numbers, f.Number)
		}
		for _, f := range All() {
			if all || f.Class != ClassProxy {
				want = append(want, f.Number)
			}
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("%s: findings %v, want %v", subject, numbers, want)
		}
	}
	if f := For("none"); len(f) == 0 || f[0].Number != 43 {
		t.Errorf("finding 43 does not explain violations without any proxy: %v", f)
	}
	all := Catalogue{{Number: 1, Class: ClassVersionSkew, Scenarios: []string{"x"}}}
	if len(all.Expected("x", "builtin", "local")) != 1 || len(all.Expected("x", "reference", "local")) != 0 {
		t.Error("a finding is expected with builtin only")
	}
}

// If any one finding is left out, the violations that it explains become NEW.
func TestEveryFindingIsNeeded(t *testing.T) {
	for _, f := range All() {
		for i, m := range f.Matches {
			s := invariant.Signature{Invariant: m.Invariants[0], Mechanism: m.Mechanisms[0]}
			s.Answer, s.Wrong, s.Setup = first(m.Answers), first(m.Wrong), first(m.Setups)
			s.Roles, s.Way, s.Reach = first(m.Roles), first(m.Ways), first(m.Reach)
			s.Obstacle, s.Before, s.Elsewhere = first(m.Obstacles), first(m.Before), first(m.Elsewhere)
			s.Change, s.Since, s.Target, s.Started = first(m.Changes), first(m.Since), first(m.Targets), first(m.Started)
			s.Extension, s.Twin = first(m.Extensions), first(m.Twins)
			if got, ok := All().Explain(s); !ok || got.Number != f.Number {
				t.Errorf("finding %d, match %d: %s is explained by finding %d", f.Number, i+1, s, got.Number)
			}
			if got, ok := All().Without(f.Number).Explain(s); ok {
				t.Errorf("finding %d, match %d: without it finding %d explains %s", f.Number, i+1, got.Number, s)
			}
		}
	}
}

// first is the first value that a field of a predicate matches, or the empty value.
func first[T any](of []T) (value T) {
	if len(of) > 0 {
		value = of[0]
	}
	return value
}

// Two findings must not have the same number, whatever files they are in, because nobody could
// distinguish them. Findings are in the order of their numbers, not of their files.
func TestFindingsAreInOrderAndHaveNumbersOfTheirOwn(t *testing.T) {
	file := func(number int) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil,
			"apiVersion: %s\nkind: %s\nnumber: %d\ntitle: t\nsymptom: s\ngrade: core\ndisclosure: public\n", APIVersion, Kind, number)}
	}
	for _, c := range []struct {
		numbers []int // in the order of the files
		want    []int // nil: refused
	}{
		{nil, []int{}}, {[]int{7}, []int{7}}, {[]int{3, 1, 2}, []int{1, 2, 3}}, {[]int{10, 9}, []int{9, 10}},
		{[]int{1, 1}, nil}, {[]int{2, 1, 2}, nil}, {[]int{1, 2, 2}, nil}, {[]int{1, 0}, nil},
	} {
		files := fstest.MapFS{"other.txt": file(1)}
		for i, number := range c.numbers {
			files[fmt.Sprintf("%d.yaml", i)] = file(number)
		}
		all, err := read(files)
		if (err == nil) != (c.want != nil) {
			t.Errorf("%v: %v", c.numbers, err)
			continue
		}
		got := []int{}
		for _, f := range all {
			got = append(got, f.Number)
		}
		if err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%v come as %v, want %v", c.numbers, got, c.want)
		}
	}
}

// An error about a match counts matches from one. A predicate without answers may set Wrong
// instead.
func TestErrorsNameTheMatch(t *testing.T) {
	good := Match{Invariants: []string{"NoLoop"}, Mechanisms: []invariant.Mechanism{invariant.MechanismResource}, Answers: []string{"404"}}
	for _, c := range []struct {
		name   string
		second Match
		want   string // part of the error; "": none
	}{
		{"good", good, ""},
		{"what is wrong instead of answers", Match{Invariants: good.Invariants, Mechanisms: good.Mechanisms, Wrong: []string{"order"}}, ""},
		{"both", Match{Invariants: good.Invariants, Mechanisms: good.Mechanisms, Answers: good.Answers, Wrong: []string{"order"}}, ""},
		{"neither", Match{Invariants: good.Invariants, Mechanisms: good.Mechanisms}, "match 2 is too wide"},
		{"no mechanism", Match{Invariants: good.Invariants, Answers: good.Answers}, "match 2 is too wide"},
		{"no invariant", Match{Mechanisms: good.Mechanisms, Answers: good.Answers}, "match 2: names no invariant"},
		{"an unknown invariant beside a known one", Match{Invariants: []string{"NoLoop", "NoLop"}, Mechanisms: good.Mechanisms,
			Answers: good.Answers}, `match 2: there is no invariant "NoLop"`},
	} {
		f := Finding{APIVersion: APIVersion, Kind: Kind, Number: 1, Title: "t", Symptom: "s", Grade: invariant.GradeCore, Disclosure: Public,
			Matches: []Match{good, c.second}}
		err := f.validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
