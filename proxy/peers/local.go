package peers

import (
	"cmp"
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
	localTimeout = 10 * time.Second // for one document, if the policy has no timeout
)

var localServer = url.URL{Scheme: "https", Host: "localhost"}

// local asks the local server what it serves: at the start, every LocalInterval, a second after a
// failure, and on demand. If the server is slow or answers with an error, the store forgets
// nothing.
type local struct {
	store    *proxy.Store
	client   *discoveryClient
	interval time.Duration
	demand   chan struct{} // of capacity one
	log      *slog.Logger
}

// run asks until the context ends. It calls first after each good answer.
func (l *local) run(ctx context.Context, first func()) {
	var last *answer
	for {
		began := time.Now()
		answer := l.client.ask(ctx, localServer, last)
		if ctx.Err() != nil {
			return
		}
		wait := min(localRetry, l.interval)
		if l.learn(last, answer, began) {
			first()
			last, wait = answer, l.interval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-l.demand:
		}
	}
}

// learn passes a good answer to the store and reports whether it was good.
func (l *local) learn(last, answer *answer, at time.Time) bool {
	core, groups := answer.Roots[proxy.RootCore], answer.Roots[proxy.RootGroups]
	known := l.store.Table().LocalKnown()
	if core.Failed != "" || groups.Failed != "" {
		if known {
			l.log.Warn("the local server cannot be asked what it serves", "why", cmp.Or(core.Failed, groups.Failed))
		}
		return false
	}
	if known && last != nil && last.Version == answer.Version &&
		discovery.Same(last.Roots[proxy.RootCore].Groups, core.Groups) && discovery.Same(last.Roots[proxy.RootGroups].Groups, groups.Groups) {
		return true
	}
	l.store.Observe(proxy.LocalFetched{Version: answer.Version, At: at, Roots: [2]discovery.Groups{core.Groups, groups.Groups}})
	return true
}
