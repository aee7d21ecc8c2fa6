package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Run runs a sidecar until ctx ends, and then shuts it down (see the package's documentation). It
// then returns nil. It returns an error if the sidecar could not start or a part of it failed. The
// error names all wrong options at once. When Run returns, no listener, connection or goroutine
// remains, except goroutines that are cancelling token reviews. Run may be called concurrently,
// with different options, listeners and registries.
func Run(ctx context.Context, o *Options) error {
	front, admin := o.Listener, o.AdminListener
	defer func() {
		for _, l := range []net.Listener{front, admin} {
			if l != nil {
				l.Close() // after a shutdown, it is closed already
			}
		}
	}()
	c, err := o.complete(time.Now())
	if err != nil {
		return err
	}
	if front == nil {
		if front, err = net.Listen("tcp", net.JoinHostPort(c.BindAddress.String(), strconv.Itoa(c.SecurePort))); err != nil {
			return fmt.Errorf("listen on --bind-address and --secure-port: %w", err)
		}
	}
	if admin == nil && c.AdminBindAddress != "" {
		if admin, err = net.Listen("tcp", c.AdminBindAddress); err != nil {
			return fmt.Errorf("listen on --admin-bind-address: %w", err)
		}
	}
	s, err := assemble(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(ctx, front, admin)
}

// run starts all parts, waits until ctx ends or a part fails, and stops the parts in order.
func (s *sidecar) run(ctx context.Context, front, admin net.Listener) error {
	background := context.WithoutCancel(ctx)
	living, kill := context.WithCancel(background)
	defer kill()
	known, leave := context.WithCancel(background) // the endpoint lease is kept until leave
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
	start(&parts, func() error { s.own.Run(living); return nil })
	start(&parts, func() error { s.flags.Run(living); return nil })
	start(&parts, func() error { return s.headers.Run(living) })
	start(&parts, func() error { return s.sources.Run(living) })
	start(&parts, func() error { return s.watchForCrash(living) })
	if s.publisher != nil {
		start(&published, func() error { return s.publish(known) })
		start(&parts, func() error { s.checkIdentity(living, s.typed); return nil })
	}
	start(&parts, func() error { return s.front.serve(front) })
	var adminAddress net.Addr
	adminLogged := "none"
	if admin != nil {
		adminAddress, adminLogged = admin.Addr(), admin.Addr().String()
		start(&parts, func() error { return unlessClosed(s.admin.Serve(admin)) })
	}
	s.log.Info("serving", "server", s.server, "policy", s.policy.Name, "address", front.Addr().String(), "admin", adminLogged,
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
	leave() // only now: as long as this server serves, its peers must be able to find it
	published.Wait()
	s.admin.Close()
	kill()
	parts.Wait()
	s.log.Info("stopped")
	return errors.Join(cause, stopped)
}

// drain makes clients use other servers while this one still serves. Nothing changes for peers.
// Otherwise they would answer 404 for the resources that only this server serves.
func (s *sidecar) drain() {
	s.draining.Store(true)
	time.Sleep(s.ShutdownDelayDuration)
}

// publish keeps the endpoint lease. If the lease cannot be deleted, this is not an error, because
// the lease expires.
func (s *sidecar) publish(ctx context.Context) error {
	err := s.publisher.Run(ctx)
	if err != nil && ctx.Err() != nil {
		s.log.Warn("the endpoint lease was not deleted", "error", err)
		return nil //nolint:nilerr // see above
	}
	return err
}

// watchForCrash returns an error when a kube-apiserver with this policy would have crashed.
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

// close closes everything that assemble has opened.
func (s *sidecar) close() {
	for _, t := range []*transport{s.toPeers, s.toLocal, s.plain, s.forSelf} {
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
