package traffic

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/workload"
)

const (
	readerRole = "skewproof-reader"
	writerRole = "skewproof-writer"

	// crowdAccount is the service account of the caller of crowds, and the name of its role.
	crowdAccount = "skewproof-crowd"

	// tokenSeconds is longer than any run: with an expired token, many requests would be answered
	// 401.
	tokenSeconds = 24 * 60 * 60
)

// Setup creates the objects that the load needs: the namespace, the roles of [workload.Reader],
// [workload.ServiceAccount] and [workload.ImpersonatedGroup], the service account itself, and a
// bearer token for it. It also creates a service account for the caller of crowds, which may list,
// watch and create everything, with the token crowd. It does not change objects that already exist,
// so it can be repeated. The admin client should not be recorded.
func Setup(ctx context.Context, admin kubernetes.Interface) (bearer, crowd string, err error) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.ManagedBy: workload.ManagedByValue}}
	}
	reader := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: workload.Reader}
	group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: workload.ImpersonatedGroup}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: workload.Namespace, Name: workload.ServiceAccount}
	all := []string{"*"}
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	core, rbac := admin.CoreV1(), admin.RbacV1()
	create(ctx, &err, "namespace", core.Namespaces(), &corev1.Namespace{ObjectMeta: meta(workload.Namespace)})
	create(ctx, &err, "service account", core.ServiceAccounts(workload.Namespace),
		&corev1.ServiceAccount{ObjectMeta: meta(workload.ServiceAccount)})
	create(ctx, &err, "cluster role", rbac.ClusterRoles(), &rbacv1.ClusterRole{
		ObjectMeta: meta(readerRole), Rules: []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: workload.ReadVerbs}},
	})
	create(ctx, &err, "cluster role binding", rbac.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta(readerRole), Subjects: []rbacv1.Subject{reader, account, group}, RoleRef: role("ClusterRole", readerRole),
	})
	create(ctx, &err, "role", rbac.Roles(workload.Namespace), &rbacv1.Role{
		ObjectMeta: meta(writerRole), Rules: []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}},
	})
	create(ctx, &err, "role binding", rbac.RoleBindings(workload.Namespace), &rbacv1.RoleBinding{
		ObjectMeta: meta(writerRole), Subjects: []rbacv1.Subject{account}, RoleRef: role("Role", writerRole),
	})
	caller := meta(crowdAccount)
	create(ctx, &err, "service account", core.ServiceAccounts(workload.Namespace), &corev1.ServiceAccount{ObjectMeta: caller})
	create(ctx, &err, "cluster role", rbac.ClusterRoles(), &rbacv1.ClusterRole{
		ObjectMeta: caller, Rules: []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: []string{"list", "watch", "create"}}},
	})
	create(ctx, &err, "cluster role binding", rbac.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: caller, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: workload.Namespace, Name: crowdAccount}},
		RoleRef: role("ClusterRole", crowdAccount),
	})
	if err == nil {
		bearer, err = token(ctx, admin, workload.ServiceAccount)
	}
	if err == nil {
		crowd, err = token(ctx, admin, crowdAccount)
	}
	return bearer, crowd, err
}

// token requests a bearer token for a service account of the load.
func token(ctx context.Context, admin kubernetes.Interface, account string) (string, error) {
	seconds := int64(tokenSeconds)
	request, err := admin.CoreV1().ServiceAccounts(workload.Namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("set up traffic: request a token for the service account %s: %w", account, err)
	}
	return request.Status.Token, nil
}

// create creates an object unless it exists. It does nothing after an earlier error.
func create[T metav1.Object](ctx context.Context, failed *error, what string, api interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
}, object T) {
	if *failed != nil {
		return
	}
	if _, err := api.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		*failed = fmt.Errorf("set up traffic: create %s %s: %w", what, object.GetName(), err)
	}
}
