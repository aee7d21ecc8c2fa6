package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// attempt is a request in progress, with the requests that the client sends because of its answer,
// such as the pages of a list. It is in the context of the request. Otherwise the transport could
// not find the sender, because several client-go clients, the load and sweeps share one HTTP
// connection.
type attempt struct {
	purpose history.Purpose
	began   time.Time
	request workload.Request // the request that is sent now
	next    workload.Request // the request that the client sends next, if more
	more    bool
}

type attemptKey struct{}

// attemptOf returns the attempt in a context. A context without an attempt belongs to a test.
func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{purpose: history.PurposeLoad, began: time.Now(), request: workload.Request{Client: workload.ClientREST}}
}

// Send sends a request to a server as its user, with the requests that follow from the answers.
// timeout is the limit for all of them. The recorded operations have the results: a client error is
// an answer like any other. There must be a client of that user and server.
func (c *Clients) Send(ctx context.Context, server string, r workload.Request, purpose history.Purpose, timeout time.Duration) {
	c.get(cmp.Or(r.User, workload.Admin), server).send(ctx, r, purpose, timeout)
}

func (c *client) send(ctx context.Context, r workload.Request, purpose history.Purpose, timeout time.Duration) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errAttemptTimeout)
	defer cancel()
	c.carryOut(ctx, &attempt{purpose: purpose, began: time.Now(), next: r, more: true})
}

func (c *client) carryOut(ctx context.Context, a *attempt) {
	for a.more {
		a.request, a.more = c.record.resolve(a.next), false
		c.sendOne(context.WithValue(ctx, attemptKey{}, a), &a.request)
	}
}

func (c *client) sendOne(ctx context.Context, r *workload.Request) {
	switch {
	case r.Upgrade && r.Protocol != "":
		c.socket.askPlain(ctx, r)
	case r.Upgrade:
		c.socket.ask(ctx, r)
	case r.Client == workload.ClientTyped:
		c.sendTyped(ctx, r)
	case r.Client == workload.ClientDynamic:
		c.sendDynamic(ctx, r)
	default:
		c.sendREST(ctx, r)
	}
}

// sendREST sends a request in plain HTTP terms, for requests that the other clients cannot send.
func (c *client) sendREST(ctx context.Context, r *workload.Request) {
	request := c.rest.Verb(r.Method()).RequestURI(r.URL().RequestURI()).MaxRetries(0)
	for name, values := range r.Header() {
		request.SetHeader(name, values...)
	}
	if body := r.Payload(); body != nil {
		request.Body(body)
	}
	if r.Verb != "watch" {
		_ = request.Do(ctx)
		return
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return
	}
	defer func() { _ = stream.Close() }()
	_, _ = io.Copy(io.Discard, stream)
}

// sendDynamic sends a request with the dynamic client, which speaks JSON.
func (c *client) sendDynamic(ctx context.Context, r *workload.Request) {
	var api dynamic.ResourceInterface = c.dynamic.Resource(schema.GroupVersionResource(r.GVR))
	if r.Namespace != "" {
		api = c.dynamic.Resource(schema.GroupVersionResource(r.GVR)).Namespace(r.Namespace)
	}
	var subresources []string
	if r.Subresource != "" {
		subresources = []string{r.Subresource}
	}
	query := r.URL().Query()
	switch r.Verb {
	case "list":
		_, _ = api.List(ctx, listOptions(query))
	case "watch":
		stream, err := api.Watch(ctx, listOptions(query))
		if err != nil {
			return
		}
		defer stream.Stop()
		for range stream.ResultChan() { // the channel is closed at the end of the stream and of ctx
		}
	case "get":
		_, _ = api.Get(ctx, r.Name, metav1.GetOptions{}, subresources...)
	case "delete":
		_ = api.Delete(ctx, r.Name, metav1.DeleteOptions{})
	case "patch":
		options := metav1.PatchOptions{FieldManager: query.Get("fieldManager")}
		if force := query.Get("force") == "true"; force {
			options.Force = &force
		}
		_, _ = api.Patch(ctx, r.Name, types.PatchType(r.ContentType), r.Payload(), options, subresources...)
	case "create", "update":
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(r.Payload()) != nil {
			return // the chooser makes no other request
		}
		if r.Verb == "create" {
			_, _ = api.Create(ctx, object, metav1.CreateOptions{})
		} else {
			_, _ = api.Update(ctx, object, metav1.UpdateOptions{})
		}
	}
}

func listOptions(query url.Values) (options metav1.ListOptions) {
	_ = metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil) // no error: the chooser writes only valid values
	return options
}

// sendTyped sends a request with the generated clientset, which speaks protobuf.
func (c *client) sendTyped(ctx context.Context, r *workload.Request) {
	switch r.GVR {
	case history.GVR{Version: "v1", Resource: "configmaps"}:
		typed(ctx, c.typed.CoreV1().ConfigMaps(r.Namespace), r, &corev1.ConfigMap{})
	case history.GVR{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:
		typed(ctx, c.typed.CoordinationV1().Leases(r.Namespace), r, &coordinationv1.Lease{})
	}
}

// typedAPI has the methods of all clients generated by client-gen that are used here.
type typedAPI[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func typed[T any](ctx context.Context, api typedAPI[T], r *workload.Request, object T) {
	if body := r.Payload(); body != nil && json.Unmarshal(body, object) != nil {
		return // the chooser makes no other request
	}
	switch r.Verb {
	case "create":
		_, _ = api.Create(ctx, object, metav1.CreateOptions{})
	case "update":
		_, _ = api.Update(ctx, object, metav1.UpdateOptions{})
	case "get":
		_, _ = api.Get(ctx, r.Name, metav1.GetOptions{})
	case "delete":
		_ = api.Delete(ctx, r.Name, metav1.DeleteOptions{})
	}
}
