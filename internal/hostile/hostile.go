// Package hostile has clients that attack an apiserver: by floods, announced bodies that they do
// not send, answers that they do not read, and forged headers. They are the clients of the table
// "Hostile clients" in docs/proxy.md. In runs with them, honest clients must not notice the
// attacks. They are started against the reference only.
//
// Most have no rights: each sends its requests anonymously, or as a user who may do nothing. Some
// may read.
package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// Target is a server, with everything that a client needs for an attack. All fields are required.
type Target struct {
	// Address is host:port.
	Address string
	// TLS verifies the server. It has no client certificate.
	TLS *tls.Config
	// Tokens are bearer tokens of users without rights.
	Tokens []string
	// Readers are bearer tokens of users who may list and watch Resources.
	Readers []string
	// Resources are the paths of collections. The server should serve some of them itself, and
	// others through a peer.
	Resources []string
	// Pod is the path of a pod, which need not exist.
	Pod string
	// Large is the path of a large document that every authenticated user may read.
	Large string
}

// Client is one kind of hostile client.
type Client struct {
	// Name describes the attack.
	Name string
	// Side is the number of such clients at a time. Pause is how long each waits between two
	// attacks.
	Side  int
	Pause time.Duration
	// attack runs until the server ends it, it is complete, or ctx ends. i is the number of the
	// attack. An error says why the attack did not reach the server.
	attack func(ctx context.Context, t *Target, i int) error
}

// Done is the result of one kind of client.
type Done struct {
	Name    string
	Attacks int
	// Failed counts the attacks that did not reach the server. Last is the reason of the last of
	// these.
	Failed int
	Last   string
}

// Longest is the maximum duration of one attack. It is longer than the deadlines of the reference
// proxy.
const Longest = 80 * time.Second

// stagger is the time between the first attacks of two kinds of clients. If all started at once,
// the result would depend on the number of CPUs of the machine.
const stagger = time.Second

// Settled returns the time after which the number of attacks in progress no longer grows.
func Settled(clients []Client) time.Duration { return Longest + time.Duration(len(clients))*stagger }

// Attack lets all clients attack a server until ctx ends. It returns when all clients have ended,
// with the result of each kind.
func Attack(ctx context.Context, clients []Client, t Target) []Done {
	done := make([]Done, len(clients))
	var mu sync.Mutex // of done
	var all sync.WaitGroup
	for i, c := range clients {
		done[i].Name = c.Name
		for side := range c.Side {
			all.Go(func() {
				rest(ctx, time.Duration(i)*stagger)
				for n := side; ctx.Err() == nil; n += c.Side {
					within, cancel := context.WithTimeout(ctx, Longest)
					err := c.attack(within, &t, n)
					cancel()
					mu.Lock()
					if err == nil {
						done[i].Attacks++
					} else if ctx.Err() == nil {
						done[i].Failed++
						done[i].Last = err.Error()
					}
					mu.Unlock()
					rest(ctx, c.Pause)
				}
			})
		}
	}
	all.Wait()
	return done
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// String returns a description for people.
func (d Done) String() string {
	if d.Failed == 0 {
		return fmt.Sprintf("%s: %d", d.Name, d.Attacks)
	}
	return fmt.Sprintf("%s: %d, and %d did not reach the server: %s", d.Name, d.Attacks, d.Failed, d.Last)
}

// dial makes a connection that is closed when ctx ends.
func (t *Target) dial(ctx context.Context, protocol string) (net.Conn, error) {
	config := t.TLS.Clone()
	config.NextProtos = []string{protocol}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, err
	}
	if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != protocol && got != "" {
		_ = conn.Close()
		return nil, fmt.Errorf("connect by %s: the server chose %s", protocol, got)
	}
	ended := &endedConn{Conn: conn}
	ended.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return ended, nil
}

// endedConn is closed when a context ends.
type endedConn struct {
	net.Conn
	stop func() bool
}

func (c *endedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (t *Target) resource(i int) string { return t.Resources[i%len(t.Resources)] }
func (t *Target) token(i int) string    { return t.Tokens[i%len(t.Tokens)] }
func (t *Target) reader(i int) string   { return t.Readers[i%len(t.Readers)] }
