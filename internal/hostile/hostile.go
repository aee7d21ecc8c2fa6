// Package hostile has clients that do to an apiserver what no client should: floods, bodies that do
// not come, answers that nobody reads, forged headers. They are those of the table "Hostile
// clients" in docs/proxy.md, for runs in which honest clients must not notice them.
//
// They have no rights: each asks anonymously, or as a user who may do nothing.
package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// Target is a server, and what a client knows of it. All fields are needed.
type Target struct {
	// Address is host:port.
	Address string
	// TLS verifies the server. It has no client certificate.
	TLS *tls.Config
	// Tokens are bearer tokens of users without rights.
	Tokens []string
	// Resources are the paths of collections. A server should serve some by itself, and others by a
	// peer.
	Resources []string
	// Pod is the path of a pod, which need not exist.
	Pod string
	// Large is the path of a large document that every authenticated user may read.
	Large string
}

// Client is one kind of hostile client.
type Client struct {
	// Name says what it does.
	Name string
	// Side is how many of them there are at a time, and Pause how long each rests between two attacks.
	Side  int
	Pause time.Duration
	// attack is carried out until the server has ended it, it is over, or ctx ends. i counts the
	// attacks. An error says why the server was not attacked.
	attack func(ctx context.Context, t *Target, i int) error
}

// Done is what a kind of client has done.
type Done struct {
	Name    string
	Attacks int
	// Failed attacks did not reach the server; Last is why the last of them did not.
	Failed int
	Last   string
}

// Longest is how long one attack may last. It is longer than the deadlines of the reference proxy.
const Longest = 80 * time.Second

// stagger is the time between the first attacks of two kinds of clients. All at once, they would
// show how many processors the machine has.
const stagger = time.Second

// Settled is after how long as many attacks are under way as there will be.
func Settled(clients []Client) time.Duration { return Longest + time.Duration(len(clients))*stagger }

// Attack lets all clients attack a server until ctx ends. It returns when none of them is left,
// with what each has done.
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

// rest waits, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// String is for people.
func (d Done) String() string {
	if d.Failed == 0 {
		return fmt.Sprintf("%s: %d", d.Name, d.Attacks)
	}
	return fmt.Sprintf("%s: %d, and %d did not reach the server: %s", d.Name, d.Attacks, d.Failed, d.Last)
}

// dial makes a connection that ends with ctx.
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
