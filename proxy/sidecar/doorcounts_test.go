package sidecar

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func aDoor(handler http.Handler) *frontDoor {
	return newFrontDoor(handler, NewOptions().frontLimits(), func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }, slog.New(slog.DiscardHandler))
}

// What a shutdown waits for: short requests, then all requests, then all connections with answers.
// Each row is a sequence of events, and which of the three have ended after each of them.
func TestWhatAShutdownWaitsFor(t *testing.T) {
	conns := map[byte]net.Conn{'1': &net.TCPConn{}, '2': &net.TCPConn{}}
	for _, row := range []string{
		// s, w: a short request or a watch begins; S, W: it ends; aN, iN, hN, cN: a connection
		// becomes active, idle, hijacked or closed; ]: no new connections; ): no new requests.
		"]s )sal",
		"s s w W S S ]s )sal",
		"s ] S.s )sal",
		"s w ] S.s W )sal",
		"s s ] S S.s )sal",
		"w ]s W )sal",
		"w ]s ) W.al",
		"s ] ) S.sal",
		"s w ] ) W S.sal",
		"a1 ]s )a i1 c1.l",
		"a1 i1 ]s )a c1.l",
		"a1 c1 ]s )sal",
		"a1 a2 ]s )a c1 c2.l",
		"a1 h1 ]s )sal",
		"a1 w ]s h1 ) W.al",
		"a1 w ]s ) W.a c1.l",
		"a1 w ]s ) c1 W.al",
		"i1 ]s )sal",
		"c1 ]s )sal",
	} {
		d := aDoor(nil)
		ended := map[byte]bool{}
		for _, event := range strings.Fields(row) {
			event, ends, _ := strings.Cut(event, ".")
			if event[0] == ']' || event[0] == ')' {
				event, ends = event[:1], event[1:]
			}
			switch event[0] {
			case 's':
				d.enter(1)
			case 'w':
				d.enter(0)
			case 'S':
				d.leave(1)
			case 'W':
				d.leave(0)
			case ']':
				d.close(&d.closing)
			case ')':
				d.close(&d.closed)
			default:
				d.connected(conns[event[1]], map[byte]http.ConnState{'a': http.StateActive, 'i': http.StateIdle, 'h': http.StateHijacked, 'c': http.StateClosed}[event[0]])
			}
			for _, each := range []byte(ends) {
				ended[each] = true
			}
			for each, c := range map[byte]chan struct{}{'s': d.shortEnded, 'a': d.allEnded, 'l': d.allSent} {
				select {
				case <-c:
					if !ended[each] {
						t.Errorf("%q: %c has ended at %q", row, each, event)
					}
				default:
					if ended[each] {
						t.Errorf("%q: %c has not ended at %q", row, each, event)
					}
				}
			}
		}
	}
}

// After the last moment for new requests, each is refused in a way that a client may repeat at once
// elsewhere. Before it, a closed listener refuses none: the request came on an open connection.
func TestRequestsDuringAShutdown(t *testing.T) {
	for stage, code := range map[string]int{"serving": 200, "closing": 200, "closed": 503} {
		for _, target := range []string{common, common + "?watch=true"} {
			for _, upgrade := range []string{"", "websocket"} {
				var d *frontDoor
				during := ""
				d = aDoor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = fmt.Sprint(d.short, d.all) }))
				d.closing, d.closed = stage != "serving", stage == "closed"
				r := httptest.NewRequest(http.MethodGet, target, nil)
				r.Header.Set("Upgrade", upgrade)
				w := httptest.NewRecorder()
				d.server.Handler.ServeHTTP(w, r)
				if w.Code != code {
					t.Errorf("%s, %s: %d, want %d", stage, target, w.Code, code)
				}
				if code == 200 {
					short := 1
					if strings.Contains(target, "watch") || upgrade != "" {
						short = 0
					}
					if want := fmt.Sprint(short, 1); during != want || d.short != 0 || d.all != 0 {
						t.Errorf("%s, %s, upgrade %q: counted %s, want %s; afterwards %d and %d", stage, target, upgrade, during, want, d.short, d.all)
					}
					continue
				}
				if h := w.Header(); h.Get("Connection") != "close" || h.Get("Retry-After") != "1" || h.Get("Cache-Control") != cacheControl || during != "" {
					t.Errorf("%s, %s: %v, served %q", stage, target, h, during)
				}
				if d.short != 0 || d.all != 0 {
					t.Errorf("%s, %s: the refused request counts", stage, target)
				}
			}
		}
	}
}

// How long a shutdown takes at most, by what does not end.
func TestHowLongAShutdownWaits(t *testing.T) {
	const timeout = time.Minute
	for name, c := range map[string]struct {
		short, long, conns int
		ends               time.Duration // when the requests end; 0: never
		takes              time.Duration
		fails              bool
	}{
		"nothing":                             {0, 0, 0, 0, 0, false},
		"a short request that ends":           {1, 0, 0, 10 * time.Second, 10 * time.Second, false},
		"a short request that does not end":   {1, 0, 0, 0, timeout + cutGrace + sendGrace + endGrace, true},
		"a short one that ends when cut":      {1, 0, 0, timeout, timeout, false},
		"a watch that does not end":           {0, 1, 0, 0, cutGrace + sendGrace + endGrace, true},
		"a watch that ends soon after":        {0, 1, 0, cutGrace / 2, cutGrace / 2, false},
		"a watch that ends with its client":   {0, 1, 0, cutGrace + sendGrace + endGrace/2, cutGrace + sendGrace + endGrace/2, false},
		"an answer that nobody reads":         {0, 0, 1, 0, sendGrace, false},
		"a short one and one nobody reads":    {1, 0, 1, 10 * time.Second, 10*time.Second + sendGrace, false},
		"a watch, and an answer nobody reads": {0, 1, 1, cutGrace / 2, cutGrace/2 + sendGrace, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := aDoor(nil)
				cut := time.Duration(-1)
				began := time.Now()
				inner := d.cut
				d.cut = func() {
					if cut < 0 { // the first time
						cut = time.Since(began)
					}
					inner()
				}
				for range c.short {
					d.enter(1)
				}
				for range c.long {
					d.enter(0)
				}
				for range c.conns {
					d.connected(&net.TCPConn{}, http.StateActive)
				}
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() {
						for range c.short {
							d.leave(1)
						}
						for range c.long {
							d.leave(0)
						}
					})
				}
				err := d.shutdown(timeout)
				if took := time.Since(began); took != c.takes || (err != nil) != c.fails {
					t.Errorf("took %s, %v; want %s, fails %t", took, err, c.takes, c.fails)
				}
				if err != nil && !strings.Contains(err.Error(), fmt.Sprint(c.short+c.long, " requests are still running")) {
					t.Errorf("the error is %v", err)
				}
				want := time.Duration(0) // watches are cut at once
				if c.short > 0 {
					want = timeout
					if c.ends > 0 {
						want = min(want, c.ends)
					}
				}
				if cut != want {
					t.Errorf("streams were cut after %s, want %s", cut, want)
				}
				if d.enter(1) {
					t.Error("a request is accepted after the shutdown")
				}
				time.Sleep(time.Hour) // what was still to end, ends
			})
		})
	}
}
