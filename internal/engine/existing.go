package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/lease"
	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

// existing is what exists in a cluster: the keys in etcd, including leases, and the resources that
// servers of each version themselves serve.
type existing struct {
	keys   []string
	served map[string]string // by kind: the names of all resources, subresources and verbs
	// builtIn holds the keys of the APIServices of the group versions that some server itself
	// serves. Each server creates those of its own version and deletes others, so which of them
	// exist depends on the server that reconciled last (autoRegisterController in kube-aggregator,
	// pkg/controllers/autoregister).
	builtIn map[string]bool
}

const (
	// apiServices is the prefix of the keys of APIServices.
	apiServices = "/registry/apiregistration.k8s.io/apiservices/"
	// masterLeases is that of the keys under which servers write their own IP addresses every 10
	// seconds while they run (pkg/controlplane/reconcilers in k8s.io/kubernetes). The first one may
	// come 10 seconds after the server is ready, and a server that starts again writes the same.
	masterLeases = "/registry/masterleases/"
)

const (
	// vanishing is the maximum time until a difference vanishes. A peer's endpoint lease expires
	// after 15 seconds.
	vanishing = 30 * time.Second
	// unchanged is the time without a change that a session waits for at its beginning, because
	// servers create some objects after they are ready.
	unchanged = 3 * time.Second
	// glance is the interval at which the content of etcd is read.
	glance = 300 * time.Millisecond
)

// kind is the version and the setup of a server. They decide which resources the server serves.
func kind(s scenario.Server) string { return strings.TrimSpace(s.Version + " " + s.Setup.String()) }

// settled returns what exists when it no longer changes.
func (s *Session) settled(ctx context.Context) (existing, error) {
	since := time.Now()
	var last []string
	settled, err := s.await(ctx, func() (bool, error) {
		keys, err := s.cluster.Keys(ctx)
		if !slices.Equal(keys, last) {
			last, since = keys, time.Now()
		}
		return time.Since(since) >= unchanged, err
	})
	if err == nil && !settled {
		err = fmt.Errorf("what is in etcd still changes %s after all servers were ready", s.patience)
	}
	return existing{keys: last, served: map[string]string{}, builtIn: map[string]bool{}}, err
}

// await calls done until it reports true, or for as long as the session has patience. An error of
// done ends the wait.
func (s *Session) await(ctx context.Context, done func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(s.patience); ; {
		if ok, err := done(); ok || err != nil || time.Now().After(deadline) {
			return ok && err == nil, err
		}
		if err := (clock{}).Sleep(ctx, glance); err != nil {
			return false, err
		}
	}
}

// clean removes from etcd the objects of the load, the objects that the last plan made for
// controllers, and the Service of aggregated APIs, which remains when these are deleted.
func (s *Session) clean(ctx context.Context) error {
	keys, err := s.cluster.Keys(ctx)
	if err != nil {
		return err
	}
	var made []string // names
	if s.last != nil {
		made = s.last.plan.ObjectNames()
	}
	return s.cluster.RemoveKeys(ctx, slices.DeleteFunc(without(keys, s.began.keys), func(key string) bool {
		return !ofLoad(path.Base(key)) && !ofService(key) && !ofObjects(key, made)
	}))
}

// ofLoad reports whether a name is that of an object of the load, or of an object that a controller
// has made for it: a ReplicaSet has the name of its Deployment and a suffix.
func ofLoad(name string) bool {
	for {
		if workload.Created(name) {
			return true
		}
		i := strings.LastIndexByte(name, '-')
		if i < 0 {
			return false
		}
		name = name[:i]
	}
}

// ofService reports whether a key is that of the Service of aggregated APIs, or of an EndpointSlice
// that a controller has made for this Service.
func ofService(key string) bool {
	const service = "/" + extension.ServiceNamespace + "/" + extension.ServiceName
	return strings.HasSuffix(key, service) || strings.Contains(key, "/endpointslices"+service+"-")
}

// ofObjects reports whether a key is that of a namespace with one of the names, of something in it,
// or of a cluster-scoped owner that belongs to it ([ownership.Objects]).
func ofObjects(key string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(key, "/"+name+"/") || path.Base(key) == name || strings.HasPrefix(path.Base(key), name+"-")
	})
}

// difference returns, in sentences, the differences between the cluster and the beginning of the
// session. It waits for them to vanish, for a limited time.
func (s *Session) difference(ctx context.Context, servers []scenario.Server) (left []string, err error) {
	_, ended := s.await(ctx, func() (bool, error) {
		left, err = s.compare(ctx, servers) // an error may vanish too
		return len(left) == 0 && err == nil, nil
	})
	if ended != nil {
		return nil, ended
	}
	return left, err
}

// maxLeft is the maximum number of differences that are reported.
const maxLeft = 20

func (s *Session) compare(ctx context.Context, servers []scenario.Server) (left []string, err error) {
	keys, err := s.cluster.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range without(keys, s.began.keys) {
		if !s.began.mayDiffer(key) {
			left = append(left, key+" is in etcd, and was not")
		}
	}
	for _, key := range without(s.began.keys, keys) {
		if !s.began.mayDiffer(key) && !mayLack(key, servers) {
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

// mayDiffer reports whether servers create and remove a key by themselves, so that it tells nothing
// about a schedule.
func (e existing) mayDiffer(key string) bool {
	return e.builtIn[key] || strings.HasPrefix(key, masterLeases)
}

// mayLack reports whether a key is an endpoint lease, and a server begins with a setup: a server
// whose proxy is off has no such lease.
func mayLack(key string, servers []scenario.Server) bool {
	return lease.IsKey(key) && slices.ContainsFunc(servers, func(begins scenario.Server) bool { return begins.Setup != nil })
}

// serves returns what a server itself serves.
func (s *Session) serves(ctx context.Context, server string) (history.Document, error) {
	client, err := asking(s.cluster, server)
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

// note records what servers of these versions serve at the beginning.
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

// learn records what servers of a kind serve at the beginning.
func (e *existing) learn(kind string, d history.Document) {
	e.served[kind] = strings.Join(names(d), "\n")
	for _, r := range d.Resources {
		e.builtIn[apiServices+r.Version+"."+r.Group] = true
	}
}

// names returns the names of everything that a document lists, sorted.
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

// changed returns the lines that only one of two texts has.
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

// without returns the elements that only the first of two sorted lists has.
func without(list, other []string) (only []string) {
	for _, one := range list {
		if _, found := slices.BinarySearch(other, one); !found {
			only = append(only, one)
		}
	}
	return only
}
