package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

// existing is what exists in a cluster: the keys in etcd, leases included, and what servers of each
// version serve themselves.
type existing struct {
	keys   []string
	served map[string]string // by kind: the names of all resources, subresources and verbs
}

const (
	// vanishing is how long a difference may take to vanish. A peer's endpoint lease expires after
	// 15 seconds.
	vanishing = 30 * time.Second
	// unchanged is for how long nothing may change at the beginning of a session: servers create
	// some objects after they are ready.
	unchanged = 3 * time.Second
	// glance is the time between two looks.
	glance = 300 * time.Millisecond
)

// kind is what decides what a server serves: its version and its setup.
func kind(s scenario.Server) string { return strings.TrimSpace(s.Version + " " + s.Setup.String()) }

// settled returns what exists when it does not change any more.
func (s *Session) settled(ctx context.Context) (existing, error) {
	deadline, since := time.Now().Add(s.patience), time.Now()
	var last []string
	for {
		keys, err := s.cluster.Keys(ctx)
		if err != nil {
			return existing{}, err
		}
		switch {
		case !slices.Equal(keys, last):
			last, since = keys, time.Now()
		case time.Since(since) >= unchanged:
			return existing{keys: keys, served: map[string]string{}}, nil
		case time.Now().After(deadline):
			return existing{}, fmt.Errorf("what is in etcd still changes %s after all servers were ready", s.patience)
		}
		if err := (clock{}).Sleep(ctx, glance); err != nil {
			return existing{}, err
		}
	}
}

// clean removes from etcd the objects that the load has created, and the Service of aggregated APIs,
// which stays when these are deleted.
func (s *Session) clean(ctx context.Context) error {
	keys, err := s.cluster.Keys(ctx)
	if err != nil {
		return err
	}
	return s.cluster.RemoveKeys(ctx, slices.DeleteFunc(keys, func(key string) bool {
		return !workload.Created(path.Base(key)) && !strings.HasSuffix(key, "/"+extension.ServiceNamespace+"/"+extension.ServiceName)
	}))
}

// difference returns, in sentences, how the cluster differs from the beginning of the session, if
// the difference does not vanish in time.
func (s *Session) difference(ctx context.Context, servers []scenario.Server) (left []string, err error) {
	for deadline := time.Now().Add(s.patience); ; {
		if left, err = s.compare(ctx, servers); len(left) == 0 && err == nil || time.Now().After(deadline) {
			return left, err
		}
		if err := (clock{}).Sleep(ctx, glance); err != nil {
			return nil, err
		}
	}
}

// maxLeft bounds the differences that are told.
const maxLeft = 20

func (s *Session) compare(ctx context.Context, servers []scenario.Server) (left []string, err error) {
	keys, err := s.cluster.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range without(keys, s.began.keys) {
		left = append(left, key+" is in etcd, and was not")
	}
	for _, key := range without(s.began.keys, keys) {
		left = append(left, key+" is not in etcd any more")
	}
	for _, server := range servers {
		if s.cluster.Serving(server.Name) == 0 {
			continue
		}
		serves, err := s.serves(ctx, server.Name)
		if err != nil {
			return nil, err
		}
		was, ok := s.began.served[kind(server)]
		if !ok {
			s.began.served[kind(server)], was = serves, serves
		}
		if serves != was {
			left = append(left, fmt.Sprintf("%s serves other resources than servers of %s did: %s", server.Name, kind(server), changed(was, serves)))
		}
	}
	return left[:min(len(left), maxLeft)], nil
}

// serves names, in lines, all that a server serves itself.
func (s *Session) serves(ctx context.Context, server string) (string, error) {
	client, err := asking(s.cluster.Direct, server)
	if err != nil {
		return "", err
	}
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	document, err := traffic.Discover(attempt, client)
	if err != nil {
		return "", fmt.Errorf("ask %s what it serves: %w", server, err)
	}
	return strings.Join(names(document), "\n"), nil
}

func names(d history.Document) []string {
	all := map[string]bool{}
	for _, r := range d.Resources {
		all[fmt.Sprintf("%s %v", r.GVR, r.Verbs)] = true
		for _, sub := range r.Subresources {
			all[fmt.Sprintf("%s/%s %v", r.GVR, sub.Name, sub.Verbs)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// changed names the lines that only one of two texts has.
func changed(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	var all []string
	for _, line := range without(b, a) {
		all = append(all, "also "+line)
	}
	for _, line := range without(a, b) {
		all = append(all, "not "+line)
	}
	return strings.Join(all[:min(len(all), maxLeft)], ", ")
}

// without returns what is only in the first of two sorted lists.
func without(list, other []string) (only []string) {
	for _, one := range list {
		if _, found := slices.BinarySearch(other, one); !found {
			only = append(only, one)
		}
	}
	return only
}
