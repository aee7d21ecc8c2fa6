package lab

import (
	"slices"
	"testing"
)

func TestSetsOfOperations(t *testing.T) {
	ids := []string{"op-10", "op-3", "op-4", "op-5", "x", "0d3a-1"}
	of := set(ids)
	if of != "0d3a-1 op-3..5 op-10 x" {
		t.Errorf("the set is %q", of)
	}
	if got := members(of); !slices.Equal(got, []string{"0d3a-1", "op-3", "op-4", "op-5", "op-10", "x"}) {
		t.Errorf("its members are %q", got)
	}
	if got := without(of, "op-4 x"); got != "0d3a-1 op-3 op-5 op-10" {
		t.Errorf("without two it is %q", got)
	}
}
