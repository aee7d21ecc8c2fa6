package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// byHeader takes the header X-Test-User for the user.
func byHeader(c *Config) {
	c.Identify = func(r *http.Request) (user.Info, error) {
		if name := r.Header.Get("X-Test-User"); name != "" {
			return &user.DefaultInfo{Name: name}, nil
		}
		return nil, errNobody
	}
}

// crowd sends requests of several users at the same time, and notes the order of their ends.
type crowd struct {
	d     *described
	all   sync.WaitGroup
	mu    sync.Mutex
	ended []string
}

func (c *crowd) ask(who, path string) {
	c.all.Go(func() {
		c.d.ask("GET", path, "", "Accept", "application/json", "X-Test-User", who)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, who)
	})
	synctest.Wait()
}

func (c *crowd) have() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ended)
}

// Descriptions are merged one after the other. The requests of one caller must not delay another's.
func TestOpenAPIOfOneCallerDelaysNoOther(t *testing.T) {
	inBubble := func(name string, test func(t *testing.T, d *described, c *crowd)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDescribed(t, map[ServerID]*describing{"a": {of: describes("a", "jobs", "cronjobs")}}, newer("a", "v1.37.1", cronjobs))
				byHeader(&d.config)
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
	inBubble("callers have their turns alternately", func(t *testing.T, d *described, c *crowd) {
		d.peers["a"].set(func() { d.peers["a"].unhashed = true }) // so that every request merges
		d.openAPI.inTurn(t.Context(), func() {
			for range 20 {
				c.ask("alice", batchPath)
			}
			c.ask("bob", batchPath)
			if got := c.have(); len(got) > 0 {
				t.Fatalf("%v have an answer before their turn", got)
			}
			if n := d.own.asked[batchPath]; n != 2 {
				t.Errorf("waiting requests hold %d copies of the local server's description, want 2: one for each caller", n)
			}
			// Time passes only while every goroutine waits, so bob's end is noted before alice's
			// next request.
			own := d.local.Handler
			d.local.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				own.ServeHTTP(w, r)
			})
		})
		c.all.Wait()
		if got := c.have(); len(got) != 21 || slices.Index(got, "bob") > 3 {
			t.Errorf("bob's only request ended after %d others", slices.Index(got, "bob"))
		}
		if n := d.openAPI.places.Callers(); n != 0 {
			t.Errorf("%d callers are still known, want none", n)
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
	inBubble("a caller whom nobody knows gets the local server's", func(t *testing.T, d *described, c *crowd) {
		got := d.ask("GET", batchPath, "", "Accept", "application/json")
		if got.Code != http.StatusOK || got.Body.String() != d.own.of {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
	inBubble("a caller that is gone leaves nothing behind", func(t *testing.T, d *described, c *crowd) {
		ctx, leave := context.WithCancel(t.Context())
		d.openAPI.inTurn(t.Context(), func() {
			for range 3 {
				c.all.Go(func() {
					r, _ := http.NewRequestWithContext(ctx, "GET", batchPath, nil)
					r.Header.Set("X-Test-User", "alice")
					d.serve(r)
				})
			}
			synctest.Wait()
			leave()
			synctest.Wait()
			if n := d.openAPI.places.Callers(); n != 0 {
				t.Errorf("%d callers wait, want none", n)
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
		if leave, err := d.openAPI.places.Enter(left, "alice"); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a panic %s: alice has no place any more", name)
		} else {
			leave()
		}
	}
}
