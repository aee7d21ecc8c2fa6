package traffic

import (
	"context"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
)

// action sends one request. What came of it is in the recorded operation, so there is nothing to return: a client error
// here is an answer like any other.
type action struct {
	client string // the name of the client that sends it
	send   func(ctx context.Context, c *client)
	first  bool // only the first identity may do it
}

func gvrOf(r history.Resource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// dynamicFor is the dynamic client of a resource, in the run's namespace if it has namespaces.
func (c *client) dynamicFor(r history.Resource) dynamic.ResourceInterface {
	if r.Namespaced {
		return c.dynamic.Resource(gvrOf(r)).Namespace(Namespace)
	}
	return c.dynamic.Resource(gvrOf(r))
}

// byDynamic makes an action of a call of the dynamic client.
func byDynamic(r history.Resource, call func(context.Context, dynamic.ResourceInterface)) action {
	return action{client: ClientDynamic, send: func(ctx context.Context, c *client) { call(ctx, c.dynamicFor(r)) }}
}

// listLimit keeps the lists of a long run small: how many objects there are proves nothing.
const listLimit = 20

func list(r history.Resource) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.List(ctx, metav1.ListOptions{Limit: listLimit})
	})
}

func get(r history.Resource, name string, subresources ...string) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Get(ctx, name, metav1.GetOptions{}, subresources...)
	})
}

func remove(r history.Resource, name string) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_ = api.Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// watch drains a short watch. Bookmarks make even one on an empty resource end with something to count.
func watch(r history.Resource, seconds int64) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		stream, err := api.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
		if err != nil {
			return
		}
		defer stream.Stop()
		for range stream.ResultChan() { // closed at the end of the stream, and of ctx
		}
	})
}

// raw is a request in plain HTTP terms, for what the typed and dynamic clients do not offer.
type raw struct {
	method string // default GET
	path   string
	query  map[string]string
	header map[string]string
	body   []byte
	stream bool // read the body as it comes, as for a watch
}

const (
	acceptTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	acceptProtobuf = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON // custom resources have no protobuf
)

func (r raw) action() action {
	return action{client: ClientREST, send: func(ctx context.Context, c *client) {
		method := r.method
		if method == "" {
			method = http.MethodGet
		}
		request := c.rest.Verb(method).AbsPath(r.path).MaxRetries(0)
		for key, value := range r.query {
			request.Param(key, value)
		}
		for key, value := range r.header {
			request.SetHeader(key, value)
		}
		if r.body != nil {
			request.Body(r.body)
		}
		if !r.stream {
			_ = request.Do(ctx)
			return
		}
		stream, err := request.Stream(ctx)
		if err != nil {
			return
		}
		defer func() { _ = stream.Close() }()
		_, _ = io.Copy(io.Discard, stream)
	}}
}

// path of a resource, of one object of it, or of a subresource of that. An empty namespace means all of them.
func path(g history.GVR, namespace, name, subresource string) string {
	p := "/apis/" + g.Group + "/" + g.Version
	if g.Group == "" {
		p = "/api/" + g.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	for _, part := range []string{g.Resource, name, subresource} {
		if part != "" {
			p += "/" + part
		}
	}
	return p
}

func namespaceOf(r history.Resource) string {
	if r.Namespaced {
		return Namespace
	}
	return ""
}

// conditionalDiscovery asks for the merged document unless it is still the one that this server answered last.
func conditionalDiscovery() action {
	return action{client: ClientREST, send: func(ctx context.Context, c *client) {
		headers := accept(acceptAggregated)
		if etag := c.record.etag.Load(); etag != nil {
			headers["If-None-Match"] = *etag
		}
		raw{path: "/apis", header: headers}.action().send(ctx, c)
	}}
}
