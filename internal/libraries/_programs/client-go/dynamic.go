package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func patchOf(value string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, state, value)
}

func parseResource(word string) (schema.GroupVersionResource, error) {
	gvr, _ := schema.ParseResourceArg(word)
	if gvr == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no RESOURCE.VERSION.GROUP", word)
	}
	return *gvr, nil
}

// resource is a client of the resource of a word. The objects are in no namespace.
func resource(config *rest.Config, word string) (dynamic.ResourceInterface, error) {
	gvr, err := parseResource(word)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(gvr), nil
}

// write creates an object, reads it back, finds it in the list, updates it and patches it.
func write(ctx context.Context, config *rest.Config, words []string) error {
	client, err := resource(config, words[0])
	if err != nil {
		return err
	}
	object, err := input()
	if err != nil {
		return err
	}
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	got, err := client.Get(ctx, words[1], metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	found := false
	for _, o := range list.Items {
		found = found || o.GetUID() == got.GetUID()
	}
	if !found {
		return fmt.Errorf("list: it has %d objects, and not the one that was created", len(list.Items))
	}
	if _, err := client.Update(ctx, labelled(got, "updated"), metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	patched, err := client.Patch(ctx, words[1], types.MergePatchType, patchOf("patched"), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	fmt.Println("written", patched.GetName(), patched.GetLabels()[state])
	return nil
}

// apply creates an object by a server-side apply, and changes it by another.
func apply(ctx context.Context, config *rest.Config, words []string) error {
	client, err := resource(config, words[0])
	if err != nil {
		return err
	}
	object, err := input()
	if err != nil {
		return err
	}
	for _, value := range []string{"made", "applied"} {
		applied, err := client.Apply(ctx, words[1], labelled(object.DeepCopy(), value), metav1.ApplyOptions{FieldManager: "skewproof"})
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		fmt.Println("state", applied.GetLabels()[state])
	}
	return nil
}

// remove deletes an object, and returns when a watch has said so.
func remove(ctx context.Context, config *rest.Config, words []string) error {
	client, err := resource(config, words[0])
	if err != nil {
		return err
	}
	got, err := client.Get(ctx, words[1], metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + words[1], ResourceVersion: got.GetResourceVersion()})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer events.Stop()
	if err := client.Delete(ctx, words[1], metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	for e := range events.ResultChan() {
		if e.Type == "DELETED" {
			fmt.Println("deleted", words[1])
			return nil
		}
	}
	return errors.New("watch: it ended, and did not say that the object was deleted")
}
