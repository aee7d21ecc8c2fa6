package peers

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const (
	renewEvery    = 5 * time.Second // three times in KeyTTL
	checkEvery    = time.Second     // checks Ready; also the pause after a failure
	writeTimeout  = 4 * time.Second // of one attempt to write
	deleteTimeout = 5 * time.Second // to remove the key at the end
)

// Publisher tells peers the address of the local server, with a key in etcd. All fields except
// Logger are required.
type Publisher struct {
	Etcd    Etcd
	Server  proxy.ServerID
	Address string // host:port at which peers reach this server
	// Ready reports whether the server would serve a peer's request. While it returns false, the key
	// is not renewed. When the key has expired, peers forget the address. It is called every second
	// and must not block.
	Ready  func() bool
	Logger *slog.Logger // nil: none

	published atomic.Bool
}

// Published reports whether the key was written once. Until then, peers do not know this process,
// so the server should not be ready. It is safe for concurrent use.
func (p *Publisher) Published() bool { return p.published.Load() }

// Run writes and renews the key until ctx ends, and then removes it within 5 s. It returns an error
// if a field is wrong or the key could not be removed. A key that could not be removed expires.
func (p *Publisher) Run(ctx context.Context) error {
	if err := p.validate(); err != nil {
		return err
	}
	log := p.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var (
		attempted bool      // an attempt may have succeeded even if it failed
		written   time.Time // zero: never
		failing   bool
	)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if began := time.Now(); began.Sub(written) >= renewEvery && p.Ready() {
			attempted = true
			switch err := p.write(ctx); {
			case err == nil:
				if written.IsZero() || failing {
					log.Info("the address for peers is published", "address", p.Address)
				}
				written, failing = began, false
				p.published.Store(true)
			case ctx.Err() == nil && !failing:
				log.Warn("the address for peers is not published; trying again every second", "address", p.Address, "err", err)
				failing = true
			}
		}
		select {
		case <-ctx.Done():
			if !attempted {
				return nil
			}
			return p.leave(context.WithoutCancel(ctx))
		case <-tick.C:
		}
	}
}

func (p *Publisher) validate() error {
	if p.Etcd == nil || p.Ready == nil {
		return fmt.Errorf("publish the address for peers: Etcd and Ready are both needed")
	}
	if _, err := ParseAddress(p.Address); err != nil {
		return fmt.Errorf("publish the address for peers: %w", err)
	}
	return nil
}

func (p *Publisher) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.Etcd.Renew(ctx, p.Server, p.Address)
}

func (p *Publisher) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	if err := p.Etcd.Withdraw(ctx, p.Server, p.Address); err != nil {
		return fmt.Errorf("remove the address for peers from etcd: %w; it expires in %s", err, KeyTTL)
	}
	return nil
}
