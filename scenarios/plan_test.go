package scenarios

import (
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// ways returns the links of the faults, such as "b→a".
func ways(faults []fault.Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.From+"→"+f.To)
	}
	return all
}

func TestShapesOfFaults(t *testing.T) {
	servers := []string{"a", "b", "c"}
	for name, c := range map[string]struct{ got, want []string }{
		"from all others":      {ways(from(servers, cut("", "a"))), []string{"b→a", "c→a"}},
		"to etcd":              {ways(from(servers, cut("", fault.Etcd))), []string{"a→etcd", "b→etcd", "c→etcd"}},
		"both ways":            {ways(bothWays(from(servers, cut("", "a")))), []string{"b→a", "c→a", "a→b", "a→c"}},
		"around":               {ways(around(servers, cut("", ""))), []string{"a→b", "b→c", "c→a", "b→a", "c→b", "a→c"}},
		"around two":           {ways(around(servers[:2], cut("", ""))), []string{"a→b", "b→a"}},
		"around four, no more": {ways(around([]string{"a", "b", "c", "d"}, cut("", "")))[:4], []string{"a→b", "b→c", "c→d", "d→a"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// Toxics must be removed in the reverse order of their injection; see internal/fault.
func TestWhatIsSufferedIsRelievedInReverse(t *testing.T) {
	plan := parameters(2, "v1.36.3", "v1.37.1").Cluster(func(int) string { return "v1.36.3" })
	heal := plan.Suffer(cut("a", "b"), cut("b", "a"))
	plan.Soak(time.Second)
	heal()
	var steps []string
	for _, s := range plan.Steps {
		steps = append(steps, s.String())
	}
	want := []string{"cut, a→b", "cut, b→a", "let the load run for 1s", "heal: cut, b→a", "heal: cut, a→b"}
	if !slices.Equal(steps, want) {
		t.Errorf("%q, want %q", steps, want)
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
}

// A partition must be around the middle part of a task. Nothing else may differ from the scenario
// without the partition.
func TestAPartitionIsAroundTheMiddle(t *testing.T) {
	p := parameters(3, "v1.36.3", "v1.37.1")
	for _, s := range []struct{ whole, without []string }{
		{sentences(garbageCollectionDuringPartition.Plan(p)), sentences(garbageCollection.Plan(p))},
		{sentences(foregroundDeletionDuringPartition.Plan(p)), sentences(foregroundDeletion.Plan(p))},
		{sentences(quotaDuringPartition.Plan(p)), sentences(quota.Plan(p))},
	} {
		from, to := slices.Index(s.whole, "cut, b→a"), slices.Index(s.whole, "heal: b to a")
		restart := slices.Index(s.whole, "restart c")
		deleted := slices.Index(s.whole, "delete the owners in collected, propagation Background")
		if deleted < 0 {
			deleted = slices.Index(s.whole, "delete the owners in collected, propagation Foreground")
		}
		if from < 0 || restart < from || deleted < restart || to < deleted {
			t.Fatalf("cut at %d, restart at %d, deletion at %d, healed at %d: %q", from, restart, deleted, to, s.whole)
		}
		around := slices.Delete(slices.Clone(s.whole), to-1, to+1)
		around = slices.Delete(around, from, restart+2)
		if !slices.Equal(around, s.without) {
			t.Errorf("without the partition it is\n%q, want\n%q", around, s.without)
		}
	}
}

// sentences are the steps of a plan in words.
func sentences(plan scenario.Plan) (all []string) {
	for _, s := range plan.Steps {
		all = append(all, s.String())
	}
	return all
}
