package traffic

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/skewproof/skewproof/internal/history"
)

// Cleanup deletes the objects that loads have left behind, of every resource that doc lists (the document of the server
// the admin client is connected to, see [Discover]). What [Setup] made stays: without controllers a deleted namespace
// would hang for ever, and block the next run. All resources are tried; the errors are joined.
func Cleanup(ctx context.Context, admin dynamic.Interface, doc history.Document) error {
	var failures []error
	done := map[groupResource]bool{}
	for _, r := range doc.Resources {
		key := groupResource{r.Group, r.Resource}
		if _, written := templates[key]; !written || done[key] {
			continue // other versions show the same objects
		}
		done[key] = true
		var api dynamic.ResourceInterface = admin.Resource(gvrOf(r))
		if r.Namespaced {
			api = admin.Resource(gvrOf(r)).Namespace(Namespace)
		}
		err := api.DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: managedByLabel + "=" + managedByValue})
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("clean up after traffic: delete %s: %w", r.GVR, err))
		}
	}
	return errors.Join(failures...)
}
