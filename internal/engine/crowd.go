package engine

import (
	"context"
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
func (l *load) Gather(ctx context.Context, server string, kind scenario.Crowd) (disperse func(), err error) {
	if l.cluster.Serving(server) == 0 {
		return nil, &scenario.RefusedCrowd{Server: server, Why: "it is not ready"}
	}
	paths := crossing(l.truth.served(), server)
	if len(paths) == 0 {
		return nil, &scenario.RefusedCrowd{Server: server, Why: "it serves itself what the other servers serve, so nothing would be passed on"}
	}
	target, err := l.crowdTarget(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("gather a crowd at %s: %w", server, err)
	}
	target.Resources = paths
	record := history.Crowd{Server: server, Kind: string(kind), Start: l.recorder.Now(), Resources: paths}
	gathered, stop := context.WithCancel(context.WithoutCancel(ctx)) // the executor ends it, also after a cancelled run
	ended := make(chan []hostile.Done, 1)
	go func() { ended <- hostile.Attack(gathered, hostile.Crowd(kind), target) }()
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

// crowdTarget is a server for the caller of a crowd.
func (l *load) crowdTarget(ctx context.Context, server string) (hostile.Target, error) {
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
	if l.crowdToken == "" {
		config, err := l.cluster.Direct(server)
		if err != nil {
			return hostile.Target{}, err
		}
		admin, err := kubernetes.NewForConfig(config)
		if err != nil {
			return hostile.Target{}, err
		}
		setup, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if l.crowdToken, err = traffic.CrowdToken(setup, admin); err != nil {
			return hostile.Target{}, err
		}
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
