package findings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

// A draft can be read at once. It matches what was seen, and nothing similar.
func TestDraftsTakeWhatWasSeenAndNoMore(t *testing.T) {
	one := invariant.Signature{
		Invariant: "NoFalseNotFound", Mechanism: invariant.MechanismResource, Roles: invariant.RoleOlder, Answer: "404 resource",
		Way: invariant.WayAnswered, Reach: invariant.ReachAll,
	}
	restarted, cut := one, one
	restarted.Change, restarted.Setup = invariant.ChangeOther, "asked server: with the flags of kubeadm"
	cut.Reach, cut.Obstacle = invariant.ReachNone, invariant.ObstacleLink
	var seen []Seen
	hostile := "b said \"---\"\n---\nkind: Other # \x1b[31m \u2028 \x85 \xff : { [ & * !"
	for _, s := range []invariant.Signature{cut, restarted, one, restarted} {
		seen = append(seen, Seen{Signature: s, Grade: invariant.GradeCore, Sentence: hostile, Scenario: hostile, From: "v1.36.3", To: hostile,
			Reproduce: hostile})
	}
	path := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(path, Draft(seen, 1007), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := ReadFile(path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, Draft(seen, 1007))
	}
	if len(own) != 2 || own[0].Disclosure != Undecided || own[0].Number != 1007 || own[1].Number != 1008 || len(own[0].Matches)+len(own[1].Matches) != 3 || own.Next() != 1009 {
		t.Fatalf("%+v", own)
	}
	for _, s := range seen {
		if _, known := own.Explain(s.Signature); !known {
			t.Errorf("not taken: %s", s.Signature)
		}
	}
	both := cut
	both.Change = invariant.ChangeOther
	near := []invariant.Signature{both}
	for _, change := range []func(*invariant.Signature){
		func(s *invariant.Signature) { s.Invariant = "TrueNotFound" },
		func(s *invariant.Signature) { s.Mechanism = invariant.MechanismSubresource },
		func(s *invariant.Signature) { s.Roles = invariant.RoleNone },
		func(s *invariant.Signature) { s.Answer = "500" },
		func(s *invariant.Signature) { s.Way = invariant.WayUnknown },
		func(s *invariant.Signature) { s.Reach = invariant.ReachSome },
		func(s *invariant.Signature) { s.Wrong = "came back" },
		func(s *invariant.Signature) { s.Before = invariant.ObstacleLink },
		func(s *invariant.Signature) { s.Since = invariant.SinceRecent },
		func(s *invariant.Signature) { s.Setup = "asked server: alone" },
	} {
		s := one
		change(&s)
		near = append(near, s)
	}
	for _, s := range near {
		if f, known := own.Explain(s); known {
			t.Errorf("finding %d takes %s", f.Number, s)
		}
	}
	if want := strings.ToValidUTF8(hostile, "\uFFFD"); own[0].Symptom != want || own[0].Scenarios[0] != want || own[0].Reproduce != want {
		t.Errorf("the text is %q, %q, %q; want %q", own[0].Symptom, own[0].Scenarios, own[0].Reproduce, want)
	}
}

func TestNumbersOfDraftsAreOnesOwn(t *testing.T) {
	if n := All().Next(); n != leastOwn {
		t.Errorf("the first is %d", n)
	}
}
