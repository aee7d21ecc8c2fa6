package share

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestACallerDoesOneThingAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Places
		first, err := p.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if leave, err := p.Enter(t.Context(), "b"); err != nil {
			t.Errorf("another caller has no place: %v", err)
		} else {
			leave()
		}
		var all sync.WaitGroup
		var order []int
		for i := range 5 {
			all.Go(func() {
				leave, err := p.Enter(t.Context(), "a")
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				order = append(order, i) // without a lock: one at a time
				leave()
				leave() // the second call does nothing
			})
			synctest.Wait() // so that it waits before the next one begins
		}
		if len(order) > 0 {
			t.Errorf("%v have a place that is taken", order)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Enter(ended, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
		first()
		all.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
		if n := p.Callers(); n != 0 {
			t.Errorf("%d callers are still known, want none", n)
		}
	})
}
