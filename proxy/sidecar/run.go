package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Run runs a sidecar until ctx ends, and then shuts it down in order (see the package's documentation). It returns nil after that, or an
// error that says why the sidecar could not start or go on; the error names all wrong options at once. When Run returns, no listener,
// connection or goroutine is left, except goroutines that are cancelling the review of a token. It may be called several times
// concurrently, with different options, listeners and registries.
func Run(ctx context.Context, o *Options) error {
	c, err := o.complete(time.Now())
	if err != nil {
		closeListeners(o)
		return err
	}
	front, admin, err := c.listen()
	if err != nil {
		closeListeners(o)
		return err
	}
	s, err := assemble(ctx, c)
	if err != nil {
		front.Close()
		if admin != nil {
			admin.Close()
		}
		return err
	}
	defer s.close()
	return s.run(ctx, front, admin)
}

func closeListeners(o *Options) {
	for _, l := range []net.Listener{o.Listener, o.AdminListener} {
		if l != nil {
			l.Close()
		}
	}
}

// listen opens both listeners; admin is nil without an admin address.
func (c *completed) listen() (front, admin net.Listener, err error) {
	front, admin = c.Listener, c.AdminListener
	if front == nil {
		front, err = net.Listen("tcp", net.JoinHostPort(c.BindAddress.String(), strconv.Itoa(c.SecurePort)))
		if err != nil {
			return nil, nil, fmt.Errorf("listen on --bind-address and --secure-port: %w", err)
		}
	}
	if admin == nil && c.AdminBindAddress != "" {
		admin, err = net.Listen("tcp", c.AdminBindAddress)
		if err != nil {
			front.Close()
			return nil, nil, fmt.Errorf("listen on --admin-bind-address: %w", err)
		}
	}
	return front, admin, nil
}

// run starts every part, waits until ctx ends or a part fails, and stops them in order.
func (s *sidecar) run(ctx context.Context, front, admin net.Listener) error {
	background := context.WithoutCancel(ctx)
	living, kill := context.WithCancel(background)
	defer kill()
	known, leave := context.WithCancel(background) // while it lasts, peers may find this server
	defer leave()

	failed := make(chan error, 8)
	var parts, published sync.WaitGroup
	start := func(group *sync.WaitGroup, part func() error) {
		group.Go(func() {
			if err := part(); err != nil {
				failed <- err
			}
		})
	}
	start(&parts, func() error { s.credentials.watch(living, s.CertificateRefreshTime, s.log); return nil })
	start(&parts, func() error { s.probe.Run(living); return nil })
	start(&parts, func() error { return s.sources.Run(living) })
	start(&parts, func() error { return s.watchForCrash(living) })
	if s.publisher != nil {
		start(&published, func() error { return s.publish(known) })
		start(&parts, func() error { s.checkIdentity(living, s.clients.typed); return nil })
	}
	start(&parts, func() error { return s.front.serve(front) })
	var adminAddress net.Addr
	if admin != nil {
		adminAddress = admin.Addr()
		start(&parts, func() error {
			if err := s.admin.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	s.log.Info("serving", "server", s.server, "policy", s.policy.Name, "address", front.Addr().String(), "admin", addressOf(adminAddress),
		"advertised", s.advertised, "upstream", s.upstream.String(), "peers", len(s.static))
	if s.Started != nil {
		s.Started(front.Addr(), adminAddress)
	}

	var cause error
	select {
	case <-ctx.Done():
		s.log.Info("stopping", "delay", s.ShutdownDelayDuration, "timeout", s.ShutdownTimeout)
		s.drain()
	case cause = <-failed:
		s.log.Error("stopping at once", "error", cause)
		s.draining.Store(true)
		leave()
		published.Wait()
	}
	stopped := s.front.shutdown(s.ShutdownTimeout)
	leave() // no request is served any more: peers that still came were refused, and tried another server or answered 503
	published.Wait()
	s.admin.Close()
	kill()
	parts.Wait()
	s.log.Info("stopped")
	return errors.Join(cause, stopped)
}

func addressOf(a net.Addr) string {
	if a == nil {
		return "none"
	}
	return a.String()
}

// drain makes clients use other servers while everything is still served. Nothing changes for peers: as long as this server serves, no
// server must answer 404 for what only this one serves.
func (s *sidecar) drain() {
	s.draining.Store(true)
	delay := time.NewTimer(s.ShutdownDelayDuration)
	defer delay.Stop()
	<-delay.C
}

// publish keeps the endpoint lease. If it cannot be deleted, that is no failure of this process: it expires.
func (s *sidecar) publish(ctx context.Context) error {
	err := s.publisher.Run(ctx)
	if err != nil && ctx.Err() != nil {
		s.log.Warn("the endpoint lease was not deleted", "error", err)
		return nil
	}
	return err
}

// watchForCrash ends the process when the policy says that a kube-apiserver would have crashed.
func (s *sidecar) watchForCrash(ctx context.Context) error {
	changed, stop := s.store.Subscribe()
	defer stop()
	for {
		if why := s.store.Table().Crashed(); why != "" {
			return fmt.Errorf("under the policy %s a kube-apiserver would have crashed: %s", s.policy.Name, why)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// close closes what assemble has opened.
func (s *sidecar) close() {
	for _, t := range []*transport{s.toPeers, s.toLocal, s.toProbe} {
		t.close()
	}
	s.toAPI.Close()
	if err := s.accessLog.close(); err != nil {
		s.log.Error("close the access log", "error", err)
	}
	if s.tracing != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.tracing.Shutdown(ctx); err != nil {
			s.log.Warn("the last spans were not sent", "error", err)
		}
	}
}
