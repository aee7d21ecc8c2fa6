package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd sends requests of several users at the same time, and notes the order of their ends.
type crowd struct {
	d     *described
	all   sync.WaitGroup
	mu    sync.Mutex
	ended []string
}

func (c *crowd) ask(who, path string) {
	c.all.Go(func() {
		c.d.ask("GET", path, "", "Accept", "application/json")
		c.ends(who)
	})
	synctest.Wait()
}

func (c *crowd) ends(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, who)
}

func (c *crowd) have() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ended)
}

// Descriptions are merged one after the other. A request waits only if it needs a new one.
func TestDescriptionsAreMergedInTurn(t *testing.T) {
	inBubble := func(name string, test func(t *testing.T, d *described, c *crowd)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDescribed(t, map[ServerID]*describing{"a": {of: describes("a", "jobs", "cronjobs")}}, newer("a", "v1.37.1", cronjobs))
				c := &crowd{d: d}
				test(t, d, c)
				c.all.Wait()
			})
		})
	}
	inBubble("a description that is known needs no turn", func(t *testing.T, d *described, c *crowd) {
		c.ask("alice", batchPath)
		d.openAPI.inTurn(t.Context(), func() {
			for _, path := range []string{batchPath, "/openapi/v3"} {
				c.ask("bob", path)
			}
			if got := c.have(); len(got) != 3 {
				t.Errorf("while another one is merged, only %v have their answer", got)
			}
		})
	})
	inBubble("all who wait have their answer, of one that the peer gave", func(t *testing.T, d *described, c *crowd) {
		d.openAPI.inTurn(t.Context(), func() {
			for range 20 {
				c.ask("alice", batchPath)
			}
			if got := c.have(); len(got) > 0 {
				t.Fatalf("%v have an answer before their turn", got)
			}
		})
		c.all.Wait()
		if got := c.have(); len(got) != 20 {
			t.Errorf("%d of 20 have their answer", len(got))
		}
		if n := d.peers["a"].asked[batchPath]; n != 1 {
			t.Errorf("the peer's description was read %d times, want once", n)
		}
	})
	inBubble("a slow peer delays only those who need its description", func(t *testing.T, d *described, c *crowd) {
		slow := make(chan struct{})
		fetch := d.config.Document
		d.config.Document = func(ctx context.Context, p PeerView, path string) ([]byte, string, error) {
			if strings.HasSuffix(path, "/batch/v1") {
				<-slow
			}
			return fetch(ctx, p, path)
		}
		c.ask("alice", batchPath)
		if !d.openAPI.inTurn(t.Context(), func() {}) || len(c.have()) > 0 {
			t.Errorf("%v have an answer of a peer that has not answered", c.have())
		}
		close(slow)
	})
	inBubble("a caller that is gone does not wait", func(t *testing.T, d *described, c *crowd) {
		ctx, leave := context.WithCancel(t.Context())
		d.openAPI.inTurn(t.Context(), func() {
			for range 3 {
				c.all.Go(func() {
					r, _ := http.NewRequestWithContext(ctx, "GET", batchPath, nil)
					d.serve(r)
					c.ends("alice")
				})
			}
			if got := c.have(); len(got) > 0 {
				t.Fatalf("%v have an answer before their turn", got)
			}
			leave()
			if got := c.have(); len(got) != 3 {
				t.Errorf("%d of 3 requests have ended", len(got))
			}
		})
	})
}

// A request that panics does not keep its turn.
func TestATurnEndsWithAPanic(t *testing.T) {
	d := newDescribed(t, map[ServerID]*describing{"a": {of: describes("a", "cronjobs")}}, newer("a", "v1.37.1", cronjobs))
	for name, panics := range map[string]func(do func()){
		"in the turn": func(do func()) { d.openAPI.inTurn(t.Context(), do) },
		"in the local server": func(do func()) {
			d.local.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { do() })
			d.ask("GET", batchPath, "")
		},
	} {
		func() {
			defer func() { _ = recover() }()
			panics(func() { panic("x") })
		}()
		left, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !d.openAPI.inTurn(left, func() {}) {
			t.Errorf("a panic %s: nobody has a turn any more", name)
		}
	}
}
