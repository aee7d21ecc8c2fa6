package local

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/skewproof/skewproof/internal/workload"
)

const (
	// discoveryRole is the role that lets users read discovery, and the name of its binding to every
	// authenticated user.
	discoveryRole = "system:discovery"
	// peersUser is the user as whom a kube-apiserver fetches the discovery of its peers, in the group
	// of all authenticated users only.
	peersUser = "system:apiserver"
	// peersBinding lets this user read discovery.
	peersBinding = "discovery-of-peers"
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
	change, word := withdrawDiscovery, "no longer "
	if granted {
		change, word = grantDiscovery, ""
	}
	if err := change(ctx, all[0]); err != nil {
		return "", fmt.Errorf("change who may read discovery, through %s: %w", all[0].name, err)
	}
	for _, s := range all {
		if err := s.awaitRight(ctx, granted); err != nil {
			return "", fmt.Errorf("wait until %s knows that %s may %sread discovery: %w", s.name, peersUser, word, err)
		}
	}
	return fmt.Sprintf("%d servers say that %s may %sread /apis", len(all), peersUser, word), nil
}

func withdrawDiscovery(ctx context.Context, s readyServer) error {
	bindings := s.client.RbacV1().ClusterRoleBindings()
	if err := bindings.Delete(ctx, peersBinding, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	binding, err := bindings.Get(ctx, discoveryRole, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if binding.Annotations == nil {
		binding.Annotations = map[string]string{}
	}
	binding.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: workload.Reader}}
	for _, group := range []string{workload.ImpersonatedGroup, workload.NodesGroup, "system:serviceaccounts"} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	_, err = bindings.Update(ctx, binding, metav1.UpdateOptions{})
	return err
}

func grantDiscovery(ctx context.Context, s readyServer) error {
	_, err := s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: peersBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: discoveryRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: peersUser}},
	}, metav1.CreateOptions{})
	return err
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
