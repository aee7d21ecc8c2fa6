package traffic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
)

// fieldManager owns the fields that the load applies.
const fieldManager = "skewproof"

func (o *objects) create(r history.Resource, name string) action {
	if t, ok := o.typed(r); ok {
		return t.create(name)
	}
	object := o.object(r, name)
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Create(ctx, object, metav1.CreateOptions{})
	})
}

func (o *objects) get(r history.Resource, name string) action {
	if t, ok := o.typed(r); ok {
		return t.get(name)
	}
	return get(r, name)
}

func (o *objects) update(r history.Resource, name string) action {
	if t, ok := o.typed(r); ok {
		return t.update(name)
	}
	object := o.object(r, name)
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Update(ctx, object, metav1.UpdateOptions{})
	})
}

func (o *objects) remove(r history.Resource, name string) action {
	if t, ok := o.typed(r); ok {
		return t.remove(name)
	}
	return remove(r, name)
}

func apply(r history.Resource, object *unstructured.Unstructured) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	})
}

func mergePatch(r history.Resource, name string, body []byte, subresources ...string) action {
	return patch(r, name, types.MergePatchType, body, subresources...)
}

func jsonPatch(r history.Resource, name string, body []byte) action {
	return patch(r, name, types.JSONPatchType, body)
}

// strategicPatch is answered 415 by custom resources: a right answer, on every server.
func strategicPatch(r history.Resource, name string, body []byte) action {
	return patch(r, name, types.StrategicMergePatchType, body)
}

func patch(r history.Resource, name string, kind types.PatchType, body []byte, subresources ...string) action {
	return byDynamic(r, func(ctx context.Context, api dynamic.ResourceInterface) {
		_, _ = api.Patch(ctx, name, kind, body, metav1.PatchOptions{}, subresources...)
	})
}
