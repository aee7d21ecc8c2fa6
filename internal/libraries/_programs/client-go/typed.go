package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// typed creates, reads, updates, patches, applies, lists and deletes a ConfigMap with the typed
// client.
func typed(ctx context.Context, config *rest.Config, words []string) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, name := clientset.CoreV1().ConfigMaps(words[0]), words[1]
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{state: "made"}}}
	if _, err := client.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	got, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	got.Labels[state] = "updated"
	if _, err := client.Update(ctx, got, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if _, err := client.Patch(ctx, name, types.StrategicMergePatchType, patchOf("patched"), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	wanted := applyv1.ConfigMap(name, words[0]).WithData(map[string]string{"applied": "yes"})
	if _, err := client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "skewproof"}); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	switch {
	case err != nil:
		return fmt.Errorf("list: %w", err)
	case len(list.Items) != 1 || list.Items[0].Labels[state] != "patched" || list.Items[0].Data["applied"] != "yes":
		return fmt.Errorf("list: %d objects, want the one that was patched and applied", len(list.Items))
	}
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	fmt.Println("written and deleted", name)
	return nil
}
