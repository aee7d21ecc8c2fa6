// Package definer creates and deletes custom resources and aggregated APIs on real servers.
package definer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Definer creates definitions through any ready server. It is not safe for concurrent use.
type Definer struct {
	cluster cluster.Reachable
	servers []string
	apis    []scenario.Definition // the APIs of the extension apiserver, in the order of definition
}

// New returns a definer for the servers of a cluster, which need not run yet.
func New(cluster cluster.Reachable, servers []string) *Definer {
	return &Definer{cluster: cluster, servers: servers}
}

// definitions are the CustomResourceDefinitions of a cluster.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const (
	// definitionPatience is how long one server may take for a definition before the next server is
	// tried.
	definitionPatience = 40 * time.Second
	definitionInterval = 100 * time.Millisecond
)

// Define creates the custom resource of a definition, or changes its versions, and waits until one
// server has established it; the others follow. For an aggregated API it registers the APIServices
// and tells the extension apiserver. The error is a [scenario.RefusedStep] if a server says
// that the definition is invalid, or if its names are taken.
func (d *Definer) Define(ctx context.Context, what scenario.Definition) error {
	err := d.define(ctx, what)
	if refused := (*takenNames)(nil); errors.As(err, &refused) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return &scenario.RefusedStep{Err: fmt.Errorf("the control plane refuses %s: %w", what, err)}
	}
	return err
}

func (d *Definer) define(ctx context.Context, what scenario.Definition) error {
	if what.Aggregated {
		return d.register(ctx, what)
	}
	object := customResource(what)
	return d.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		api := client.Resource(definitions)
		if err := applied(ctx, api, object); err != nil {
			return err
		}
		return wait.PollUntilContextCancel(ctx, definitionInterval, true, func(ctx context.Context) (bool, error) {
			now, err := api.Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if why := condition(now, "NamesAccepted", "False"); why != "" && !conditionHolds(now, "Established") {
				return false, &takenNames{why}
			}
			return conditionHolds(now, "Established"), nil
		})
	})
}

// takenNames says that another definition of the group has a name that this one asks for. No server
// serves the definition until the other is gone.
type takenNames struct{ why string }

func (e *takenNames) Error() string { return e.why }

// Undefine deletes the custom resource of a definition and waits until it is gone. It is not an
// error if the resource does not exist.
func (d *Definer) Undefine(ctx context.Context, what scenario.Definition) error {
	if what.Aggregated {
		return d.unregister(ctx, what)
	}
	name := customResource(what).GetName()
	return d.throughAny(ctx, func(ctx context.Context, client dynamic.Interface) error {
		api := client.Resource(definitions)
		if err := removed(ctx, api, name); err != nil {
			return err
		}
		return wait.PollUntilContextCancel(ctx, definitionInterval, true, func(ctx context.Context) (bool, error) {
			_, err := api.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	})
}

// throughAny calls do with ready servers until one succeeds: the run may have paused a server or
// cut it off from etcd.
func (d *Definer) throughAny(ctx context.Context, do func(context.Context, dynamic.Interface) error) error {
	var errs []error
	for _, server := range d.servers {
		if d.cluster.Serving(server) == 0 {
			continue
		}
		err := d.through(ctx, server, do)
		if taken := (*takenNames)(nil); err == nil || ctx.Err() != nil || errors.As(err, &taken) || apierrors.IsInvalid(err) ||
			apierrors.IsForbidden(err) {
			return err // the next server would say the same
		}
		errs = append(errs, fmt.Errorf("through %s: %w", server, err))
	}
	if len(errs) == 0 {
		return errors.New("no server is ready")
	}
	return errors.Join(errs...)
}

func (d *Definer) through(ctx context.Context, server string, do func(context.Context, dynamic.Interface) error) error {
	config, err := d.cluster.Direct(server)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, definitionPatience)
	defer cancel()
	return do(attempt, client)
}

// customResource returns the CustomResourceDefinition: cluster-scoped, with a schema that accepts
// every object.
func customResource(d scenario.Definition) *unstructured.Unstructured {
	version := func(name string, served bool) map[string]any {
		return map[string]any{
			"name": name, "served": served, "storage": name == d.StorageVersion(),
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
	}
	var versions []any
	if d.Storage == "" {
		versions = append(versions, version(scenario.StoredVersion, false))
	}
	for _, name := range d.Versions {
		versions = append(versions, version(name, true))
	}
	names := map[string]any{"plural": d.Resource, "singular": d.Resource, "kind": d.KindName(), "listKind": d.KindName() + "List"}
	for field, values := range map[string][]string{"shortNames": d.ShortNames, "categories": d.Categories} {
		if len(values) > 0 {
			names[field] = words(values)
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(),
		"kind":       "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": d.Resource + "." + d.Group,
			// Needed for groups below k8s.io (KEP-1111).
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test of skewproof"},
		},
		"spec": map[string]any{
			"group": d.Group, "scope": "Cluster", "versions": versions,
			"names": names,
		},
	}}
}

// conditionHolds reports whether a condition in the status of a definition is true.
func conditionHolds(definition *unstructured.Unstructured, kind string) bool {
	return condition(definition, kind, "True") != ""
}

// condition returns the message of a condition, or its kind if it has none; "" if the condition
// does not have that status.
func condition(definition *unstructured.Unstructured, kind, status string) string {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return ""
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["status"] == status {
			message, _ := c["message"].(string)
			return cmp.Or(message, kind)
		}
	}
	return ""
}

// words returns a list as decoded JSON has it.
func words(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
