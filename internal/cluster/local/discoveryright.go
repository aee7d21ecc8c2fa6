package local

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/skewproof/skewproof/internal/workload"
)

const (
	// discoveryBinding lets every authenticated user read discovery.
	discoveryBinding = "system:discovery"
	// peersUser is the user as whom a kube-apiserver fetches the discovery of its peers, in the group
	// of all authenticated users only.
	peersUser = "system:apiserver"
)

// GrantDiscovery implements [cluster.Administrator]. It withdraws the right as people who harden a
// cluster do: the binding of all authenticated users is changed, and kube-apiservers are told not
// to restore it when they start.
func (c *Cluster) GrantDiscovery(ctx context.Context, granted bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, administrationTimeout)
	defer cancel()
	all, err := c.ready()
	if err != nil {
		return "", err
	}
	users, word := []string{workload.Reader}, "no longer "
	if granted {
		users, word = append(users, peersUser), ""
	}
	bindings := all[0].client.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(ctx, discoveryBinding, metav1.GetOptions{})
	if err == nil {
		metav1.SetMetaDataAnnotation(&binding.ObjectMeta, rbacv1.AutoUpdateAnnotationKey, "false")
		binding.Subjects = nil
		for _, user := range users {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		for _, group := range []string{workload.ImpersonatedGroup, workload.NodesGroup, "system:serviceaccounts"} {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
		}
		_, err = bindings.Update(ctx, binding, metav1.UpdateOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("change who may read discovery, through %s: %w", all[0].name, err)
	}
	for _, s := range all {
		if err := s.awaitRight(ctx, granted); err != nil {
			return "", fmt.Errorf("wait until %s knows that %s may %sread discovery: %w", s.name, peersUser, word, err)
		}
	}
	return fmt.Sprintf("%d servers say that %s may %sread /apis", len(all), peersUser, word), nil
}

// awaitRight waits until the server's authorizer knows whether its peers may read discovery.
func (s readyServer) awaitRight(ctx context.Context, granted bool) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: peersUser, Groups: []string{"system:authenticated"},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/apis", Verb: "get"},
	}}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		answer, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == granted, err
	})
}
