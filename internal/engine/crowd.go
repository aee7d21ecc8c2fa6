package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/hostile"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

// Gather implements [step.Crowds]. The caller of the crowd has an identity of its own. It asks for
// what only other servers serve at the moment.
func (l *load) Gather(ctx context.Context, server string) (disperse func(), err error) {
	if l.cluster.Serving(server) == 0 {
		return nil, &scenario.RefusedCrowd{Server: server, Why: "it is not ready"}
	}
	paths := crossing(l.truth.served(), server)
	if len(paths) == 0 {
		return nil, &scenario.RefusedCrowd{Server: server, Why: "it serves itself what the other servers serve, so nothing would be passed on"}
	}
	if err := l.requestCrowdToken(ctx, server); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, &scenario.RefusedCrowd{Server: server, Why: "no server gave its caller a token: " + err.Error()}
	}
	target, err := l.crowdTarget(server)
	if err != nil {
		return nil, fmt.Errorf("gather a crowd at %s: %w", server, err)
	}
	target.Resources = paths
	record := history.Crowd{Server: server, Kind: "watches", Start: l.recorder.Now(), Resources: paths}
	gathered, stop := context.WithCancel(context.WithoutCancel(ctx)) // the executor ends it, also after a cancelled run
	ended := make(chan []hostile.Done, 1)
	go func() { ended <- hostile.Attack(gathered, hostile.Crowd(), target) }()
	return func() {
		record.End = l.recorder.Now()
		stop()
		for _, d := range <-ended {
			record.Connections += d.Attacks + d.Failed
			record.Failed += d.Failed
			record.Problem = d.Last
		}
		l.recorder.Crowd(record)
	}, nil
}

// crowdTokenTimeout bounds the wait for one server's token. The server may be paused, or may not
// reach etcd.
const crowdTokenTimeout = 10 * time.Second

// requestCrowdToken gets the token of the caller of crowds, unless there is one. It asks the
// crowd's server first, and then the others, because a schedule may have put the first out of
// action.
func (l *load) requestCrowdToken(ctx context.Context, server string) error {
	if l.crowdToken != "" {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(l.servers), func(name string) bool { return name == server })
	var errs []error
	for _, name := range append([]string{server}, others...) {
		if l.cluster.Serving(name) == 0 {
			continue
		}
		token, err := l.crowdTokenOf(ctx, name)
		if err == nil {
			l.crowdToken = token
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (l *load) crowdTokenOf(ctx context.Context, server string) (string, error) {
	config, err := l.cluster.Direct(server)
	if err != nil {
		return "", err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	attempt, cancel := context.WithTimeout(ctx, crowdTokenTimeout)
	defer cancel()
	return traffic.CrowdToken(attempt, admin)
}

// crowdTarget is a server for the caller of a crowd.
func (l *load) crowdTarget(server string) (hostile.Target, error) {
	address, err := l.cluster.URL(server)
	if err != nil {
		return hostile.Target{}, err
	}
	at, err := url.Parse(address)
	if err != nil {
		return hostile.Target{}, err
	}
	trust, err := rest.TLSConfigFor(l.cluster.Anonymous())
	if err != nil {
		return hostile.Target{}, err
	}
	return hostile.Target{Address: at.Host, TLS: trust, Readers: []string{l.crowdToken}}, nil
}

// crossing returns the paths of the collections that a client can list, watch and create objects
// in, and that other servers serve, but not this one. They are sorted.
func crossing(served map[string]history.Document, server string) (paths []string) {
	own := map[history.GVR]bool{}
	for _, r := range served[server].Resources {
		own[r.GVR] = true
	}
	for name, doc := range served {
		for _, r := range doc.Resources {
			if name == server || own[r.GVR] || !offers(r, "list", "watch", "create") {
				continue
			}
			path := strings.Join([]string{"/apis", r.Group, r.Version}, "/")
			if r.Group == "" {
				path = "/api/" + r.Version
			}
			if r.Namespaced {
				path += "/namespaces/" + workload.Namespace
			}
			paths = append(paths, path+"/"+r.Resource)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func offers(r history.Resource, verbs ...string) bool {
	for _, verb := range verbs {
		if !slices.Contains(r.Verbs, verb) {
			return false
		}
	}
	return true
}
