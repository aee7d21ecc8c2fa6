package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gone is what follow prints, and takes, in the place of a label for an object that is not there.
const gone = "gone"

func stateOf(object *unstructured.Unstructured) string {
	if object == nil {
		return gone
	}
	return object.GetLabels()[state]
}

// follow changes nothing. It prints the state of the object at each change, as the cache has it,
// and ends at the state that is its word.
func follow(ctx context.Context, config *rest.Config, o about, words []string) error {
	if len(words) != 1 {
		return errors.New("follow takes the state at which it ends")
	}
	return manage(ctx, config, o, nil, func(_ context.Context, _ client.Client, object *unstructured.Unstructured) (bool, error) {
		fmt.Println("state", stateOf(object))
		return stateOf(object) == words[0], nil
	})
}

// reconcile creates the object of standard input. The controller changes its label by a server-side
// apply, then its status, which is its word as JSON, by a patch. It ends when the cache has both.
func reconcile(ctx context.Context, config *rest.Config, o about, words []string) error {
	if len(words) != 1 {
		return errors.New("reconcile takes the status that it writes, as JSON")
	}
	var wanted map[string]any
	if err := json.Unmarshal([]byte(words[0]), &wanted); err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	made, err := input()
	if err != nil {
		return err
	}
	create := func(ctx context.Context, c client.Client) error {
		if err := c.Create(ctx, made); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		return nil
	}
	return manage(ctx, config, o, create, func(ctx context.Context, c client.Client, object *unstructured.Unstructured) (bool, error) {
		switch {
		case object == nil:
			return false, nil
		case stateOf(object) != "applied":
			applied := new(unstructured.Unstructured)
			applied.SetGroupVersionKind(o.kind)
			applied.SetNamespace(o.Namespace)
			applied.SetName(o.Name)
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(labelled(applied, "applied")), client.FieldOwner("skewproof"),
				client.ForceOwnership)
			if err != nil {
				return false, fmt.Errorf("apply: %w", err)
			}
		case !has(object, wanted):
			before := object.DeepCopy()
			object.Object["status"] = wanted
			if err := c.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
				return false, fmt.Errorf("patch the status: %w", err)
			}
		default:
			fmt.Println("reconciled", o.Name)
			return true, nil
		}
		return false, nil
	})
}

// has reports whether the status of an object has these fields.
func has(object *unstructured.Unstructured, wanted map[string]any) bool {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for field, value := range wanted {
		if !reflect.DeepEqual(status[field], value) {
			return false
		}
	}
	return true
}

// finish updates the object, deletes it when the cache has the update, and ends when the cache does
// not have the object any more.
func finish(ctx context.Context, config *rest.Config, o about, words []string) error {
	if len(words) != 0 {
		return errors.New("finish takes no more words")
	}
	return manage(ctx, config, o, nil, func(ctx context.Context, c client.Client, object *unstructured.Unstructured) (bool, error) {
		switch stateOf(object) {
		case gone:
			fmt.Println("finished", o.Name)
			return true, nil
		case "updated":
			if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
				return false, fmt.Errorf("delete: %w", err)
			}
		default:
			if err := c.Update(ctx, labelled(object, "updated")); err != nil {
				return false, fmt.Errorf("update: %w", err)
			}
		}
		return false, nil
	})
}
