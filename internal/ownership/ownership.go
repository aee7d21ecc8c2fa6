// Package ownership creates and deletes, on real servers, the objects on which controllers act:
// namespaces, owners and their dependents.
package ownership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// patience is the time after which Objects stops waiting for a server and tries the next one.
const patience = 20 * time.Second

// Objects creates and deletes objects as the administrator, past all links and faults, through
// servers that serve the objects. It is not safe for concurrent use.
type Objects struct {
	cluster cluster.Reachable
	servers []string
	// served is what each ready server itself serves.
	served func() map[string]history.Document
	record func(history.Written)

	owners map[string][]owner // by the name of the objects
	going  []going
}

// New returns Objects for the servers of a cluster. served is what each ready server itself serves.
// record takes the writes that name fields by which versions differ.
func New(cluster cluster.Reachable, servers []string, served func() map[string]history.Document, record func(history.Written)) *Objects {
	return &Objects{cluster: cluster, servers: servers, served: served, record: record, owners: map[string][]owner{}}
}

// owner is an object that was created as an owner.
type owner struct {
	history.Resource
	namespace, name, uid string
}

func (o owner) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.GVR.Resource}
}

// String describes the owner: "ClusterTrustBundle gc".
func (o owner) String() string { return o.Kind + " " + o.name }

// going is a deletion that controllers must complete.
type going struct {
	namespace string
	owner     *owner // nil if the namespace itself is deleted
}

// Create implements [step.Objects].
func (c *Objects) Create(ctx context.Context, o scenario.Objects) error {
	resources, err := c.resources(o)
	if err != nil {
		return fmt.Errorf("create objects %s: %w", o.Name, err)
	}
	if err := c.createNamespace(ctx, o.Name); err != nil {
		return err
	}
	c.owners[o.Name] = nil
	for _, r := range resources {
		made, err := c.createOwner(ctx, o, r)
		if err != nil {
			return err
		}
		c.owners[o.Name] = append(c.owners[o.Name], made)
		if err := c.createDependents(ctx, o, made); err != nil {
			return err
		}
	}
	return nil
}

func (c *Objects) createNamespace(ctx context.Context, name string) error {
	if _, err := c.create(ctx, "v1", namespaces, object("v1", "Namespace", "", name)); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// resources are the resources of the owners.
func (c *Objects) resources(o scenario.Objects) ([]history.Resource, error) {
	served := c.served()
	if o.Of == nil {
		return Choose(served)
	}
	for _, server := range slices.Sorted(maps.Keys(served)) {
		if r, ok := find(served[server], kind{group: o.Of.Group, resource: o.Of.Resource}); ok {
			return []history.Resource{r}, nil
		}
	}
	return nil, fmt.Errorf("no ready server serves %s.%s: define it, and wait until a server serves it", o.Of.Resource, o.Of.Group)
}

func (c *Objects) createOwner(ctx context.Context, o scenario.Objects, r history.Resource) (owner, error) {
	made := owner{Resource: r, name: o.Name + "-owner"}
	if r.Namespaced {
		made.namespace = o.Name
	}
	wanted := object(apiVersion(r), r.Kind, made.namespace, made.name)
	if o.Held && made.namespace != "" {
		wanted.SetFinalizers([]string{holds})
	}
	fields := map[string]any{} // a custom resource needs no fields
	if o.Of == nil {
		var err error
		if fields, err = kindOf(r).fields(made.name); err != nil {
			return owner{}, fmt.Errorf("make %s: %w", made, err)
		}
	}
	for name, value := range fields {
		wanted.Object[name] = value
	}
	created, err := c.create(ctx, apiVersion(r), made.gvr(), wanted)
	if err != nil {
		return owner{}, fmt.Errorf("create %s: %w", made, err)
	}
	made.uid = string(created.GetUID())
	return made, nil
}

// create creates an object. If an answer is lost, the next server may say that the object exists
// already. Then create reads it.
func (c *Objects) create(ctx context.Context, version string, gvr schema.GroupVersionResource, o *unstructured.Unstructured) (
	created *unstructured.Unstructured, err error,
) {
	tried := false
	err = c.through(ctx, version, gvr.Resource, func(ctx context.Context, client dynamic.Interface) error {
		in := client.Resource(gvr).Namespace(o.GetNamespace())
		created, err = in.Create(ctx, o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && tried {
			created, err = in.Get(ctx, o.GetName(), metav1.GetOptions{})
		}
		tried = true
		return err
	})
	return created, err
}

// delete deletes what goes. If an answer is lost, the next server may say that there is no such
// object. If every answer is lost, the deletion may have begun all the same.
func (c *Objects) delete(ctx context.Context, version string, gvr schema.GroupVersionResource, name string, o metav1.DeleteOptions, goes going) error {
	namespace := ""
	if goes.owner != nil {
		namespace = goes.owner.namespace
	}
	tried := false
	err := c.through(ctx, version, gvr.Resource, func(ctx context.Context, client dynamic.Interface) error {
		err := client.Resource(gvr).Namespace(namespace).Delete(ctx, name, o)
		if apierrors.IsNotFound(err) && tried {
			err = nil
		}
		tried = true
		return err
	})
	if tried {
		c.going = append(c.going, goes)
	}
	return err
}

func (c *Objects) createDependents(ctx context.Context, o scenario.Objects, of owner) error {
	return c.through(ctx, "v1", "configmaps", func(ctx context.Context, client dynamic.Interface) error {
		for i := range o.Dependents {
			d := object("v1", "ConfigMap", o.Name, fmt.Sprintf("%s-%s-%d", o.Name, strings.ToLower(of.Kind), i))
			d.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
				"apiVersion": apiVersion(of.Resource), "kind": of.Kind, "name": of.name, "uid": of.uid, "blockOwnerDeletion": true,
			}}
			_, err := client.Resource(configMaps).Namespace(o.Name).Create(ctx, d, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) { // another server created it before its answer was lost
				return fmt.Errorf("create dependent %s of %s: %w", d.GetName(), of, err)
			}
		}
		return nil
	})
}

// DeleteOwners implements [step.Objects]. It tries to delete each owner, also after another one
// could not be deleted.
func (c *Objects) DeleteOwners(ctx context.Context, o scenario.Objects, how scenario.Propagation) error {
	if len(c.owners[o.Name]) == 0 {
		return fmt.Errorf("delete the owners in %s: none was created", o.Name)
	}
	policy := metav1.DeletionPropagation(how)
	var errs []error
	for _, of := range c.owners[o.Name] {
		err := c.delete(ctx, apiVersion(of.Resource), of.gvr(), of.name, metav1.DeleteOptions{PropagationPolicy: &policy},
			going{namespace: o.Name, owner: &of})
		if err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", of, err))
		}
	}
	return errors.Join(errs...)
}

// DeleteNamespace implements [step.Objects].
func (c *Objects) DeleteNamespace(ctx context.Context, o scenario.Objects) error {
	if err := c.delete(ctx, "v1", namespaces, o.Name, metav1.DeleteOptions{}, going{namespace: o.Name}); err != nil {
		return fmt.Errorf("delete namespace %s: %w", o.Name, err)
	}
	return nil
}

// Collected implements [step.Objects].
func (c *Objects) Collected(ctx context.Context) (bool, error) {
	for len(c.going) > 0 {
		gone, err := c.gone(ctx, c.going[0])
		if err != nil || !gone {
			return false, err
		}
		c.going = c.going[1:]
	}
	return true, nil
}

func (c *Objects) gone(ctx context.Context, g going) (gone bool, err error) {
	if g.owner == nil {
		err = c.through(ctx, "v1", "namespaces", func(ctx context.Context, client dynamic.Interface) error {
			gone, err = absent(ctx, client.Resource(namespaces), g.namespace)
			return err
		})
		return gone, err
	}
	of := *g.owner
	err = c.through(ctx, apiVersion(of.Resource), of.GVR.Resource, func(ctx context.Context, client dynamic.Interface) error {
		gone, err = absent(ctx, client.Resource(of.gvr()).Namespace(of.namespace), of.name)
		return err
	})
	if err != nil || !gone {
		return false, err
	}
	err = c.through(ctx, "v1", "configmaps", func(ctx context.Context, client dynamic.Interface) error {
		list, err := client.Resource(configMaps).Namespace(g.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			for _, r := range item.GetOwnerReferences() {
				gone = gone && string(r.UID) != of.uid
			}
		}
		return nil
	})
	return gone && err == nil, err
}

func absent(ctx context.Context, api dynamic.ResourceInterface, name string) (bool, error) {
	_, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// through calls do with ready servers that serve the resource, until one call succeeds.
func (c *Objects) through(ctx context.Context, version, resource string, do func(context.Context, dynamic.Interface) error) error {
	var errs []error
	documents := c.served()
	for _, server := range c.servers {
		document, known := documents[server]
		if !known || c.cluster.Serving(server) == 0 || !serves(document, version, resource) {
			continue
		}
		config, err := c.cluster.Direct(server)
		if err != nil {
			return err
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, patience)
		err = do(attempt, client)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		errs = append(errs, fmt.Errorf("through %s: %w", server, err))
	}
	if len(errs) == 0 {
		return fmt.Errorf("no server that serves %s in %s is ready", resource, version)
	}
	return errors.Join(errs...)
}

func object(version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
