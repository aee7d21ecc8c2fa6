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
	// builtIn are the keys of the APIServices of the group versions that some server serves by
	// itself. Servers create those of their own version, and delete others: which of them exist
	// depends on which server looked last (autoRegisterController in kube-aggregator,
	// pkg/controllers/autoregister).
	builtIn map[string]bool
}

// apiServices is the prefix of the keys of APIServices.
const apiServices = "/registry/apiregistration.k8s.io/apiservices/"

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
			return existing{keys: keys, served: map[string]string{}, builtIn: map[string]bool{}}, nil
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
		if !s.began.builtIn[key] {
			left = append(left, key+" is in etcd, and was not")
		}
	}
	for _, key := range without(s.began.keys, keys) {
		if !s.began.builtIn[key] {
			left = append(left, key+" is not in etcd any more")
		}
	}
	for _, server := range servers {
		if s.cluster.Serving(server.Name) == 0 {
			continue
		}
		document, err := s.serves(ctx, server.Name)
		if err != nil {
			return nil, err
		}
		serves := strings.Join(names(document), "\n")
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

// serves is what a server serves itself.
func (s *Session) serves(ctx context.Context, server string) (history.Document, error) {
	client, err := asking(s.cluster.Direct, server)
	if err != nil {
		return history.Document{}, err
	}
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	document, err := traffic.Discover(attempt, client)
	if err != nil {
		return document, fmt.Errorf("ask %s what it serves: %w", server, err)
	}
	return document, nil
}

// note notes what servers of these versions serve at the beginning.
func (s *Session) note(ctx context.Context, servers []scenario.Server) error {
	for _, server := range servers {
		document, err := s.serves(ctx, server.Name)
		if err != nil {
			return err
		}
		s.began.learn(kind(server), document)
	}
	return nil
}

// learn notes what servers of a kind serve at the beginning.
func (e *existing) learn(kind string, d history.Document) {
	e.served[kind] = strings.Join(names(d), "\n")
	for _, r := range d.Resources {
		e.builtIn[apiServices+r.Version+"."+r.Group] = true
	}
}

// names names all that a document lists, sorted.
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
