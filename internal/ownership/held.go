package ownership

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/scenario"
)

// holds is the finalizer of owners that are held. No controller knows it, so only the run removes
// it.
const holds = "skewproof.dev/held"

// Release implements [step.Objects]. It is not an error if an owner is gone: invariants judge that.
func (c *Objects) Release(ctx context.Context, o scenario.Objects) error {
	for _, of := range c.owners[o.Name] {
		if of.namespace == "" {
			continue
		}
		err := c.through(ctx, apiVersion(of.Resource), of.GVR.Resource, func(ctx context.Context, client dynamic.Interface) error {
			body := []byte(`{"metadata":{"finalizers":null}}`)
			_, err := client.Resource(of.gvr()).Namespace(of.namespace).Patch(ctx, of.name, types.MergePatchType, body, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("remove the finalizer of %s: %w", of, err)
		}
	}
	return nil
}
