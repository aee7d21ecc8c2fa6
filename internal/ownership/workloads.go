package ownership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/fieldskew"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// CreateWorkloads implements [step.Objects]. A server may refuse a workload: then it has lost no
// field. It is an error if it refuses all of them.
func (c *Objects) CreateWorkloads(ctx context.Context, o scenario.Objects, through string) error {
	made, err := c.workloads(ctx, o)
	if err == nil {
		err = c.createNamespace(ctx, o.Name)
	}
	if err != nil {
		return fmt.Errorf("create workloads in %s: %w", o.Name, err)
	}
	var refused []error
	for i, w := range o.Workloads {
		err := c.write(ctx, through, schema.GroupVersionResource(w.GVR), made[i])
		if err != nil {
			err = fmt.Errorf("create %s %s through %s: %w", w.Kind, made[i].GetName(), through, err)
		}
		switch {
		case err == nil:
		case apierrors.ReasonForError(err) == metav1.StatusReasonInvalid || apierrors.IsBadRequest(err):
			refused = append(refused, err)
		default:
			return err
		}
	}
	if len(refused) == len(o.Workloads) {
		return errors.Join(refused...)
	}
	return nil
}

// auditIDHeader makes an ID of the client the server's audit ID (k8s.io/api, audit/v1,
// HeaderAuditID).
const auditIDHeader = "Audit-ID"

// identified sends requests with an audit ID.
type identified struct {
	http.RoundTripper
	id string
}

func (i identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(auditIDHeader, i.id)
	return i.RoundTripper.RoundTrip(r)
}

// write creates an object with strict validation of fields, and records the fields that the answer
// lacks.
func (c *Objects) write(ctx context.Context, through string, gvr schema.GroupVersionResource, o *unstructured.Unstructured) error {
	config, err := c.config(through)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return identified{next, id} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := client.Resource(gvr).Namespace(o.GetNamespace()).Create(attempt, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	w := history.Written{ID: id}
	if err == nil {
		w.Lost = lost("", o.Object, answer.Object)
		slices.Sort(w.Lost)
	}
	c.record(w)
	return err
}

// lost returns the paths of the fields that a request names with a value and an answer lacks.
func lost(path string, named, answered any) (paths []string) {
	switch v := named.(type) {
	case map[string]any:
		has, _ := answered.(map[string]any)
		for name, of := range v {
			paths = append(paths, lost(strings.TrimPrefix(path+"."+name, "."), of, has[name])...)
		}
	case []any:
		has, _ := answered.([]any)
		for i, of := range v {
			var got any
			if i < len(has) {
				got = has[i]
			}
			paths = append(paths, lost(fmt.Sprintf("%s[%d]", path, i), of, got)...)
		}
	case nil:
	default:
		if answered == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// workloads makes the objects: such that the first and the last server accept them, which are of
// different versions, if any servers are.
func (c *Objects) workloads(ctx context.Context, o scenario.Objects) (all []*unstructured.Unstructured, err error) {
	var sides [2]fieldskew.Side
	for i, server := range []string{c.servers[len(c.servers)-1], c.servers[0]} {
		config, err := c.cluster.Direct(server)
		if err != nil {
			return nil, err
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		front := fieldskew.HTTPServer{Client: client, URL: config.Host}
		if sides[i].Schemas, err = front.Schemas(ctx); err != nil {
			return nil, err
		}
		sides[i].Server = front
	}
	for i, w := range o.Workloads {
		content, err := fieldskew.Object(ctx, sides, fieldskew.Resource{GVR: w.GVR, Kind: w.Kind, Namespaced: true}, w.Field)
		if err != nil {
			return nil, err
		}
		made := &unstructured.Unstructured{Object: content}
		made.SetNamespace(o.Name)
		made.SetName(fmt.Sprintf("%s-%d", strings.ToLower(w.Kind), i))
		all = append(all, made)
	}
	return all, nil
}
