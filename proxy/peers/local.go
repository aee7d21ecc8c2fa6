package peers

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

const (
	localAccept  = discovery.AcceptV2NoPeer + "," + discovery.AcceptV2 + "," + discovery.AcceptV2Beta1
	localRetry   = time.Second      // after a failure
	localTimeout = 10 * time.Second // of one document where the policy sets none: the local server is near
)

// local asks the local server what it serves: at once, every LocalInterval, after a failure every second, and on demand.
//
// A failure makes the store forget what the server serves only if the connection failed or broke: then the process may have ended, and the
// next one may be of another version. A server that is slow, or answers with an error, still serves what it served.
type local struct {
	store    *proxy.Store
	client   *discoveryClient
	server   url.URL
	interval time.Duration
	demand   chan struct{} // of capacity one
	log      *slog.Logger
}

// run asks until the context ends. first is called after the first good answer.
func (l *local) run(ctx context.Context, first func()) {
	var last *answer
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.demand:
			timer.Stop()
		}
		began := time.Now()
		answer := l.client.ask(ctx, l.server, last)
		if ctx.Err() != nil {
			return
		}
		if l.learn(last, answer, began) {
			first()
			last = answer
			timer.Reset(l.interval)
			continue
		}
		if answer.Broken {
			last = nil // the next process tells everything anew
		}
		timer.Reset(min(localRetry, l.interval))
	}
}

// learn passes a good answer to the store, and reports whether it was good.
func (l *local) learn(last, answer *answer, at time.Time) bool {
	core, groups := answer.Roots[proxy.RootCore], answer.Roots[proxy.RootGroups]
	known := l.store.Table().LocalKnown()
	if core.Failed != "" || groups.Failed != "" || answer.Broken {
		why := core.Failed
		if why == "" {
			why = groups.Failed
		}
		if known {
			l.log.Warn("the local server cannot be asked what it serves", "why", why, "forgotten", answer.Broken)
		}
		if answer.Broken {
			l.store.Observe(proxy.LocalLost{At: at})
		}
		return false
	}
	if known && last != nil && last.Version == answer.Version &&
		same(last.Roots[proxy.RootCore].Groups, core.Groups) && same(last.Roots[proxy.RootGroups].Groups, groups.Groups) {
		return true
	}
	fetched := proxy.LocalFetched{Version: answer.Version, At: at}
	fetched.Roots[proxy.RootCore], fetched.Roots[proxy.RootGroups] = core.Groups, groups.Groups
	l.store.Observe(fetched)
	return true
}

// same reports whether two documents are the very same, as ask gives what has not changed.
func same(a, b discovery.Groups) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
