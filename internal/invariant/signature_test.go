package invariant

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// signaturesOf returns the signatures of all violations, sorted, each once.
func signaturesOf(h *history.History) []Signature {
	var out []Signature
	for _, v := range Judge(h) {
		for _, e := range v.Evidence {
			out = append(out, e.Signature)
		}
	}
	slices.SortFunc(out, Signature.Compare)
	return slices.Compact(out)
}

func TestSignatures(t *testing.T) {
	const name = "NoFalseNotFound"
	old := func() *story { return tell().runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3") }
	denied := Signature{
		Invariant: name, Mechanism: MechanismResource, Roles: RoleOlder, Answer: "404 resource", Reach: ReachAll,
	}
	with := func(change func(*Signature)) Signature {
		s := denied
		change(&s)
		return s
	}
	for _, c := range []struct {
		name  string
		story *story
		want  Signature
	}{
		{"a whole resource", old().ask(60, "b", gadgets, 404), denied},
		{"by the log, the asked server answered", old().ask(60, "b", gadgets, 404).hop("b", 0, 9, false),
			with(func(s *Signature) { s.Way = WayAnswered })},
		{"by the log, a peer answered", old().ask(60, "b", gadgets, 404).hop("b", 0, 9, false).hop("a", 1, 8, true),
			with(func(s *Signature) { s.Way, s.Target = WayPassedOn, TargetServes })},
		{"a subresource of a resource that the asked server has", old().ask(60, "b", pods, 404, sub("resize")),
			with(func(s *Signature) { s.Mechanism = MechanismSubresource })},
		{"a watch that is denied is like any other request", old().ask(60, "b", gadgets, 404, verb("watch")), denied},
		{"the client set the header of the hop", old().ask(60, "b", gadgets, 404, func(o *history.Operation) { o.Rerouted = true }),
			with(func(s *Signature) { s.Mechanism = MechanismForgedHop })},
		{"an upgrade that is denied, too", old().ask(60, "b", gadgets, 404, func(o *history.Operation) { o.Client = history.ClientSocket }), denied},
		{"the asked server serves it itself", old().ask(60, "a", gadgets, 404), with(func(s *Signature) { s.Roles, s.Reach = RoleItself, ReachNobody })},
		{"a newer server is asked", tell().runs("a", "v1.35.0").runs("b", "v1.36.3").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Roles = RoleNewer })},
		{"the versions are the same", tell().runs("a", "v1.36.3").runs("b", "v1.36.3").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Roles = RoleSame })},
		{"the newer server emulates the older version", tell().runs("a", "v1.37.1").runs("b", "v1.36.3").emulating("1.36", "a").ask(60, "b", gadgets, 404), denied},
		{"both emulate one version", tell().runs("a", "v1.37.1").runs("b", "v1.36.3").emulating("1.36", "a", "b").ask(60, "b", gadgets, 404), denied},
		{"versions are unknown", tell().runs("a", "unknown").ask(60, "b", gadgets, 404), with(func(s *Signature) { s.Roles = RoleNone })},
		{"an old design", tell().runs("a", "v1.35.0").runs("b", "v1.34.4").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Setup = "asked server: proxy of v1.34" })},
		{"the link is cut", old().cut("b", "a", 55, 65).ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle = ReachNone, ObstacleLink })},
		{"the peer is paused", old().pause("a", 55, 65).runs("a", "v1.37.1").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle = ReachNone, ObstacleProcess })},
		{"the peer's discovery fails", old().fault(history.FaultBreakDiscovery, "", "a", 55, 65, false).ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle = ReachPart, ObstacleDiscovery })},
		{"a certificate is wrong", old().distrust(history.DistrustServing, "b", "a", 55, 65).ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle = ReachNone, ObstacleConfiguration })},
		{"the peer is stopping and serves on", old().drain("a", 50, 70, 75).runs("a", "v1.37.1").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Obstacle, s.Change = ObstacleDraining, ChangeCapable })},
		{"it is out of reach, too", old().cut("b", "a", 45, 80).drain("a", 50, 70, 75).runs("a", "v1.37.1").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle, s.Change = ReachNone, ObstacleDraining, ChangeCapable })},
		{"another server could be asked", old().served("c", 2, newDoc).drain("a", 50, 70, 75).runs("a", "v1.37.1").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Roles, s.Change = RoleMixed, ChangeCapable })},
		{"the link was cut until shortly before", old().cut("b", "a", 45, 55).ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Before = ObstacleLink })},
		{"the link was cut before another answer", old().cut("b", "a", 45, 55).ask(98, "b", gadgets, 200).ask(100, "b", gadgets, 404), denied},
		{"the link was cut long ago, and nothing was asked since", old().cut("b", "a", 45, 55).ask(100, "b", gadgets, 404),
			with(func(s *Signature) { s.Before = ObstacleLink })},
		{"a server restarted while it was cut, and nothing was asked since", old().cut("b", "a", 30, 55).stop("c", 40).start("c", 42, oldDoc).runs("c", "v1.36.3").
			ask(100, "b", gadgets, 404), with(func(s *Signature) { s.Before, s.Change = ObstacleLink, ChangeOther })},
		{"the asked server was without etcd", old().cut("b", "etcd", 45, 55).ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Before = ObstacleEtcd })},
		{"the asked server started while it was without etcd", old().cut("b", "etcd", 1, 15).ask(30, "b", gadgets, 404),
			with(func(s *Signature) { s.Before, s.Change = ObstacleEtcd, ChangeAsked })},
		{"the asked server was restarted", old().stop("b", 30).start("b", 32, oldDoc).runs("b", "v1.36.3").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Change = ChangeAsked })},
		{"the asked server started while the link was cut", old().cut("b", "a", 3, 65).ask(20, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle, s.Change = ReachNone, ObstacleLink, ChangeAsked })},
		{"the asked server started before that", old().cut("b", "a", 15, 65).ask(30, "b", gadgets, 404),
			with(func(s *Signature) { s.Reach, s.Obstacle = ReachNone, ObstacleLink })},
		{"the serving server was restarted", old().stop("a", 30).start("a", 32, newDoc).runs("a", "v1.37.1").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Change = ChangeCapable })},
		{"another server was restarted", old().stop("c", 30).start("c", 32, oldDoc).runs("c", "v1.36.3").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Change = ChangeOther })},
		{"it was created", tell().runs("a", "v1.37.1").runs("b", "v1.36.3").served("a", 40, doc("more", line(pods), line(widgets), line(gadgets), line(ghosts))).
			ask(60, "b", ghosts, 404), with(func(s *Signature) { s.Change = ChangeCreation })},
		{"the server is set up in its own way", old().setUp("b", "with the flags of kubeadm").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Setup = "asked server: with the flags of kubeadm" })},
		{"a setup that names a server", old().setUp("a", "with the host name of c, emulating 1.36").ask(60, "b", gadgets, 404),
			with(func(s *Signature) { s.Setup = "serving server: with the host name of another server" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := signatureOf(t, c.story, name)
			if got.Since = SinceLong; got != c.want { // Since has a test of its own
				t.Errorf("signature %+v\n     want %+v", got, c.want)
			}
		})
	}
}

// setUp records how the present process of a server was set up.
func (s *story) setUp(server, how string) *story {
	s.h.Effects = append(s.h.Effects, history.Effect{Server: server, Incarnation: s.incarnation(server), Setup: how})
	return s
}

func TestSignaturesTellHowLongNothingHasChanged(t *testing.T) {
	checkSigned(t, "NoFalseNotFound", func(s Signature) Since { return s.Since }, map[string]signed[Since]{
		"long":                 {tell().step("restart c", 20, 30).ask(70, "b", gadgets, 404), SinceLong},
		"recent":               {tell().step("restart c", 20, 30).ask(50, "b", gadgets, 404), SinceRecent},
		"not over":             {tell().step("restart c", 20, 80).ask(50, "b", gadgets, 404), SinceLong},
		"one of two not over":  {tell().step("restart c", 20, 30).cut("c", "b", 40, 60).ask(50, "b", gadgets, 404), SinceLong},
		"a step that is quiet": {tell().soak(20, 45).ask(50, "b", gadgets, 404), SinceLong},
	})
}

// soak adds a step that disturbs nothing.
func (s *story) soak(from, to float64) *story {
	s.step("let the load run", from, to)
	s.h.Steps[len(s.h.Steps)-1].Disturbs = false
	return s
}

// A wrong answer that began while the link was cut keeps its kind after the link is healed.
func TestWrongAnswersThatGoOnKeepTheirCause(t *testing.T) {
	s := tell().runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").cut("b", "a", 40, 60).askEvery(55, 58, "b", gadgets, 404).
		askEvery(62, 190, "b", gadgets, 404)
	for _, e := range verdictOf(t, s.h, "NoFalseNotFound").Evidence {
		if e.Signature.Obstacle != ObstacleLink && e.Signature.Before != ObstacleLink {
			t.Errorf("%d violations from %s to %s have lost the link: %s", e.Count, e.First, e.Last, e.Signature)
		}
	}
	// A right answer in between ends the series of wrong answers.
	s.ask(120.5, "b", gadgets, 200)
	if n := len(verdictOf(t, s.h, "NoFalseNotFound").Evidence); n != 4 {
		t.Errorf("%d groups of violations, want 4: during the cut, soon after it, later, and without any cause", n)
	}
}

// A signature names no server and no time. The same run with other names, and later, has the same
// signatures.
func TestSignaturesNameNoServer(t *testing.T) {
	original := rich(true, names()...)
	want := signaturesOf(original.h)
	if len(want) < 20 {
		t.Fatalf("only %d signatures: the story shows too little", len(want))
	}
	data, err := json.Marshal(original.h)
	if err != nil {
		t.Fatal(err)
	}
	renamed := string(data)
	for _, field := range []string{"server", "name", "Name", "from", "to"} {
		for _, name := range []string{"a", "b", "c"} {
			renamed = strings.ReplaceAll(renamed, `"`+field+`":"`+name+`"`, `"`+field+`":"kube-`+name+`"`)
		}
	}
	var h history.History
	if err := json.Unmarshal([]byte(renamed), &h); err != nil {
		t.Fatal(err)
	}
	if got := signaturesOf(&h); !slices.Equal(got, want) {
		t.Errorf("with other names: %v\nwant %v", got, want)
	}
	for _, s := range signaturesOf(&h) {
		if strings.Contains(s.String(), "kube-") {
			t.Errorf("%s names a server", s)
		}
	}
}

func TestTheSmallestExampleIsShown(t *testing.T) {
	s := tell().cut("c", "a", 75, 82).ask(80, "b", gadgets, 404, verb("create")).hop("b", 0, 9, false).
		ask(130, "b", gadgets, 404, verb("create")).hop("b", 0, 9, false).ask(140, "b", gadgets, 404).hop("b", 0, 9, false).ask(150, "b", gadgets, 404).hop("b", 0, 9, false)
	v := verdictOf(t, s.h, "NoFalseNotFound")
	if len(v.Evidence) != 1 || v.Evidence[0].Count != 4 || v.Evidence[0].Operations[0].Start != sec(140) {
		t.Fatalf("shown is not the one at 140 s, a plain list without a fault: %+v", v.Evidence)
	}
	if e := v.Evidence[0]; e.First > 80*time.Second+sec(0.02) || e.Last < 150*time.Second {
		t.Errorf("from %s to %s, want 80 s to 150 s", e.First, e.Last)
	}
}

// Finding 5 is about one design. A crash of any other design is another defect.
func TestACrashTellsTheDesignOfItsServer(t *testing.T) {
	for version, want := range map[string]string{"v1.34.4": "asked server: proxy of v1.34", "v1.37.1": ""} {
		if got := signatureOf(t, tell().state("b", 50, history.StateCrashed).runs("b", version), "NoCrash").Setup; got != want {
			t.Errorf("%s: %q, want the setup %q", version, got, want)
		}
	}
}

// TestSignaturesTellTheTarget asks b, which passes the request on to c.
func TestSignaturesTellTheTarget(t *testing.T) {
	type change = func(*history.Operation)
	refused := func(o *history.Operation) { o.Message = "error trying to reach service: connection refused" }
	much := doc("much newer", line(gadgets), line(history.GVR{Group: gadgets.Group, Version: "v3", Resource: gadgets.Resource}))
	beside := func(version string, d history.Document) *story {
		return tell().served("c", 2, newDoc).served("a", 2, d).runs("a", version).runs("b", "v1.30.14").runs("c", "v1.30.14")
	}
	for name, c := range map[string]struct {
		story     *story
		invariant string
		status    int
		with      []change
		want      Target
	}{
		"it never served it":                    {tell(), "NoFalseNotFound", 404, nil, TargetNever},
		"it served it before it restarted":      {tell().served("c", 2, newDoc).stop("c", 30).start("c", 32, oldDoc), "NoFalseNotFound", 404, nil, TargetRestarted},
		"it served it, and no longer serves it": {tell().served("c", 2, newDoc).served("c", 40, oldDoc), "NoFalseNotFound", 404, nil, TargetDropped},
		"it serves it":                          {tell().served("c", 2, newDoc), "NoFalseNotFound", 404, nil, TargetServes},
		"it is out of reach":                    {tell().served("c", 2, newDoc).cut("b", "c", 60, 61), "Available", 503, []change{refused}, TargetOutOfReach},
		"it is without etcd":                    {tell().served("c", 2, newDoc).cut("c", "etcd", 55, 65), "Available", 500, nil, TargetNoEtcd},
		"it is without etcd, and says so":       {tell().served("c", 2, newDoc).cut("c", "etcd", 55, 65), "Available", 503, nil, TargetServes},
		"a much newer server stores others":     {beside("v1.34.4", much), "Available", 500, nil, TargetUnreadable},
		"it is denied, beside such a server":    {beside("v1.34.4", much), "NoFalseNotFound", 404, nil, TargetServes},
		"the other one is the next minor one":   {beside("v1.31.1", much), "Available", 500, nil, TargetServes},
		"the other one serves no other version": {beside("v1.34.4", newDoc), "Available", 500, nil, TargetServes},
		"it has etcd again, and a new link":     {tell().served("c", 2, newDoc).cut("c", "etcd", 40, 45), "Available", 500, nil, TargetServes},
	} {
		s := c.story.ask(60, "b", gadgets, c.status, c.with...).hop("b", 0, 9, false).hop("c", 1, 8, true)
		if got := signatureOf(t, s, c.invariant).Target; got != c.want {
			t.Errorf("%s: %q, want the target %q", name, got, c.want)
		}
	}
	well := beside("v1.34.4", much).ask(60, "b", gadgets, 500).hop("b", 0, 9, false).hop("c", 1, 8, true, answering(200))
	if got := signatureOf(t, well, "Available").Target; got != TargetServes {
		t.Errorf("the target's log says 200: %q, want the target %q", got, TargetServes)
	}
	for version, want := range map[string]Target{"v1.34.4": TargetUnreadable, "v1.31.1": TargetNone} { // c itself is asked
		s := beside(version, much).ask(60, "c", gadgets, 503).hop("c", 0, 9, false)
		if got := signatureOf(t, s, "Available").Target; got != want {
			t.Errorf("beside %s: %q, want the target %q", version, got, want)
		}
	}
}

// TestSignaturesTellAStart asks b for a resource that a serves. Peers may learn of a start for as
// long after it as it took. The requests come after the stories' Staleness, so a 404 is not
// tolerated.
func TestSignaturesTellAStart(t *testing.T) {
	slow := func() *story { // from 30 s to 50 s
		return tell().stop("a", 28).state("a", 30, history.StateStarting).state("a", 50, history.StateReady).served("a", 50, newDoc)
	}
	for name, c := range map[string]struct {
		story     *story
		started   Started
		elsewhere Obstacle
	}{
		"no later than the start took": {slow().ask(65, "b", gadgets, 404), StartedJust, ObstacleNone},
		"later":                        {slow().ask(72, "b", gadgets, 404), StartedLong, ObstacleNone},
		"later, while another server was out of reach":     {slow().cut("b", "c", 40, 80).ask(72, "b", gadgets, 404), StartedLately, ObstacleLink},
		"later, while another server was paused":           {slow().pause("c", 40, 80).ask(72, "b", gadgets, 404), StartedLately, ObstacleProcess},
		"later, while another server was without etcd":     {slow().cut("c", "etcd", 40, 80).ask(72, "b", gadgets, 404), StartedLately, ObstacleEtcd},
		"a second one had been serving it all the time":    {slow().served("c", 2, newDoc).ask(65, "b", gadgets, 404), StartedLong, ObstacleNone},
		"another server was out of reach, long after it":   {tell().cut("b", "c", 40, 80).ask(70, "b", gadgets, 200).ask(72, "b", gadgets, 404), StartedLong, ObstacleLink},
		"later, while the link to another server was slow": {slow().fault("latency", "b", "c", 40, 80, false).ask(72, "b", gadgets, 404), StartedLately, ObstacleLink},
	} {
		if got := signatureOf(t, c.story, "NoFalseNotFound"); got.Started != c.started || got.Elsewhere != c.elsewhere {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.started, c.elsewhere)
		}
	}
}

// TestSignaturesTellUpstreamsReasons checks that upstream's own words distinguish why it answers
// 503.
func TestSignaturesTellUpstreamsReasons(t *testing.T) {
	for name, c := range map[string]struct {
		op   history.Operation
		want string
	}{
		"no connection":    {history.Operation{Sent: &history.Sent{}, Received: &history.Received{Message: "error trying to reach service: EOF\n"}}, "503 no connection"},
		"no address":       {history.Operation{Sent: &history.Sent{}, Received: &history.Received{Message: "Error getting ip and port info of the remote server while proxying"}}, "503 no address"},
		"of an upgrade":    {history.Operation{Sent: &history.Sent{Client: history.ClientSocket}, Received: &history.Received{Body: history.BodyText, Message: "EOF\n"}}, "503 no connection"},
		"another, of that": {history.Operation{Sent: &history.Sent{Client: history.ClientSocket}, Received: &history.Received{Body: history.BodyStatus, Message: "apiserver is shutting down"}}, "503"},
		"another":          {history.Operation{Sent: &history.Sent{}, Received: &history.Received{Body: history.BodyText, Message: "apiserver is shutting down"}}, "503"},
	} {
		c.op.Status = 503
		if got := answerKind(&c.op); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
