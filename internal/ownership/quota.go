package ownership

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var quotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// plenty is more than any run creates, because the quota must not refuse anything.
const plenty = "1000"

// CreateQuota implements [step.Objects].
func (c *Objects) CreateQuota(ctx context.Context, o scenario.Objects) error {
	hard := map[string]any{}
	for _, of := range c.owners[o.Name] {
		if of.Namespaced {
			hard[counted(of.GVR)] = plenty
		}
	}
	quota := object("v1", "ResourceQuota", o.Name, o.Name)
	quota.Object["spec"] = map[string]any{"hard": hard}
	err := c.through(ctx, "v1", "resourcequotas", func(ctx context.Context, client dynamic.Interface) error {
		_, err := client.Resource(quotas).Namespace(o.Name).Create(ctx, quota, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another server created it before its answer was lost
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create ResourceQuota %s: %w", o.Name, err)
	}
	return nil
}

// counted returns the name by which a quota limits the number of objects of a resource
// (k8s.io/apiserver, pkg/quota/v1/generic, ObjectCountQuotaResourceNameFor).
func counted(r history.GVR) string {
	if r.Group == "" {
		return "count/" + r.Resource
	}
	return "count/" + r.Resource + "." + r.Group
}
