package scenarios

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// The fields come from the recorded comparison of the two versions, and from nowhere else.
func TestWorkloadsHaveTheFieldsByWhichVersionsDiffer(t *testing.T) {
	table, err := recorded.Fields("v1.36.3", "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	plain, fields := 0, 0
	for _, w := range Differing("v1.36.3", "v1.37.1") {
		switch {
		case w.Field == "":
			plain++
		case !slices.ContainsFunc(table.Fields, func(f recorded.FieldSkew) bool {
			return f.GVR == w.GVR && f.Kind == w.Kind && f.Path == w.Field && f.Older.Outcome == recorded.FieldDropped
		}):
			t.Errorf("%+v is not recorded", w)
		default:
			fields++
		}
	}
	if plain != 3 || fields == 0 || fields > 3*mostFields {
		t.Errorf("%d workloads without a field, want one of each kind; %d with one", plain, fields)
	}
	for _, pair := range [][2]string{{"v1.37.1", "v1.37.1"}, {"v1.36.3", "v1.47.0"}} {
		if got := Differing(pair[0], pair[1]); len(got) != 3 || slices.ContainsFunc(got, func(w scenario.Workload) bool { return w.Field != "" }) {
			t.Errorf("%v: %+v, want three workloads without a field", pair, got)
		}
	}
}
