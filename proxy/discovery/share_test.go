package discovery

import (
	"testing"
)

func TestShare(t *testing.T) {
	const all = "apps/v1:deployments,replicasets apps/v1beta1:deployments batch/v1:jobs"
	like := doc(all)
	if got := Share(doc(all), like); !sameBacking(got, like) {
		t.Error("equal documents are not shared")
	}
	other := doc("policy/v1:budgets apps/v1:replicasets,deployments")
	if got := Share(other, like); !sameBacking(got, other) {
		t.Error("a document with nothing in common is copied")
	}
	got := Share(doc("batch/v1:jobs,cronjobs apps/v1:deployments,replicasets apps/v1beta1:daemonsets"), like)
	if !sameBacking(got[1].Versions[0].Resources, like[0].Versions[0].Resources) {
		t.Error("an equal list of resources is not shared")
	}
	if text(got) != "batch/v1:jobs,cronjobs apps/v1:deployments,replicasets apps/v1beta1:daemonsets" {
		t.Errorf("got %s", text(got))
	}
}

// TestShareChangesNothing compares the result of Share with its arguments in every detail.
func TestShareChangesNothing(t *testing.T) {
	whole, parts := 0, 0
	for seed := range uint64(thorough) {
		r := newRandom(seed)
		r.repeats = seed%5 == 0
		like := r.groups()
		groups := copied(like)
		if seed%8 != 0 {
			groups = r.altered(like)
		} else if len(groups) > 0 && seed%3 > 0 { // a change outside the resources
			g := &groups[r.IntN(len(groups))]
			switch n := len(g.Versions); {
			case r.IntN(3) == 0:
				g.Annotations = map[string]string{"a": "b"}
			case r.IntN(3) == 0: //nolint:gocritic // another number
				groups[0], groups[len(groups)-1] = groups[len(groups)-1], groups[0]
			case n > 0 && r.IntN(2) == 0:
				g.Versions[0].Freshness = "Another"
			case n > 0:
				g.Versions[0], g.Versions[n-1] = g.Versions[n-1], g.Versions[0]
			}
		}
		before, beforeLike := encoded(t, groups), encoded(t, like)
		got := Share(groups, like)
		if encoded(t, got) != before || encoded(t, groups) != before || encoded(t, like) != beforeLike {
			t.Fatalf("seed %d: something changed:\n%s\n%s", seed, before, encoded(t, got))
		}
		switch {
		case sameBacking(got, like):
			whole++
		case !sameBacking(got, groups):
			parts++
		case before == beforeLike:
			t.Fatalf("seed %d: equal, but not shared", seed)
		}
	}
	if whole < thorough/20 || parts < thorough/20 {
		t.Errorf("shared as a whole %d times, in part %d times: the generator draws too few cases", whole, parts)
	}
}
