// Package informers runs client-go's reflectors, by which every controller learns which objects
// exist, and records what they receive. It judges nothing.
package informers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/internal/connections"
	"github.com/skewproof/skewproof/internal/history"
)

// Way is an address to which informers send requests.
type Way struct {
	Server string // the server with this address; empty for the load balancer
	URL    string // "https://198.19.0.1:6443"
}

// name returns a name for people, which is also part of the names of informers.
func (w Way) name() string {
	if w.Server == "" {
		return "the load balancer"
	}
	return w.Server
}

// Recorder records what informers receive; [*history.Recorder] is one. Calls are concurrent.
type Recorder interface {
	Delivery(history.Delivery)
	Now() history.Time
}

// Informers are running informers: one for each way and resource.
type Informers struct {
	cancel context.CancelFunc
	conns  []*connections.Set
	stores []*store
	once   sync.Once
}

// Start starts an informer for each way and resource, with the given identity. The informers of one
// way share their connections, like informers of one program. They run until Close. identity has no
// host, and its rate limits are not used.
func Start(ways []Way, resources []history.GVR, identity *rest.Config, recorder Recorder) (*Informers, error) {
	running, cancel := context.WithCancel(context.Background())
	all := &Informers{cancel: cancel}
	for _, way := range ways {
		client, conns, err := clientOf(way, identity)
		if err != nil {
			all.Close()
			return nil, fmt.Errorf("prepare the informers that ask %s: %w", way.name(), err)
		}
		all.conns = append(all.conns, conns)
		for _, resource := range resources {
			s := &store{recorder: recorder, is: history.Delivery{
				Informer: resource.String() + " through " + way.name(), Server: way.Server, GVR: resource,
			}}
			all.stores = append(all.stores, s)
			s.tell(history.Delivery{Kind: history.DeliveryStarted})
			reflector := cache.NewReflectorWithOptions(listerWatcher(client, s), nil, s, cache.ReflectorOptions{Name: s.is.Informer})
			go reflector.RunWithContext(running)
		}
	}
	return all, nil
}

// Close ends the informers. After it has returned, nothing more is recorded. It does not wait for
// reflectors that wait before their next request, because client-go cannot wake them in every case.
func (i *Informers) Close() {
	i.once.Do(func() {
		for _, s := range i.stores {
			s.end()
		}
		i.cancel()
		for _, conns := range i.conns {
			conns.Close()
		}
	})
}

func clientOf(way Way, identity *rest.Config) (dynamic.Interface, *connections.Set, error) {
	config := rest.CopyConfig(identity)
	conns := connections.New()
	config.Host, config.UserAgent, config.QPS = way.URL, "skewproof/informers", -1
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }                        // ignore the environment
	config.Dial = conns.Dialer(&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}) // as client-go does
	client, err := dynamic.NewForConfig(config)
	return client, conns, err
}

// listerWatcher requests all objects of the store's resource. It tells the store which requests
// failed, because reflectors repeat some requests without reporting the failure.
func listerWatcher(client dynamic.Interface, s *store) cache.ListerWatcher {
	gvr := s.is.GVR
	api := client.Resource(schema.GroupVersionResource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource})
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := api.List(ctx, options)
			s.failed(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := api.Watch(ctx, options)
			s.failed(err)
			return events, err
		},
	}
}

// statusOf is the HTTP status of an error, or 0 if there was no answer.
func statusOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}
