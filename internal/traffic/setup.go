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

	// tokenSeconds outlasts any run: a token that expires in the middle would turn into a wave of 401.
	tokenSeconds = 24 * 60 * 60
)

// Setup creates what the load stands on: the namespace, the roles of [workload.Reader] and [workload.ServiceAccount], the service
// account itself, and a bearer token for it. What exists already is left as it is, so Setup can be repeated. The admin
// client should be one that is not recorded.
func Setup(ctx context.Context, admin kubernetes.Interface) (token string, err error) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.ManagedBy: workload.ManagedByValue}}
	}
	reader := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: workload.Reader}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: workload.Namespace, Name: workload.ServiceAccount}
	all := []string{"*"}

	steps := []struct {
		what   string
		create func(metav1.CreateOptions) error
	}{
		{"namespace " + workload.Namespace, func(o metav1.CreateOptions) error {
			_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta(workload.Namespace)}, o)
			return err
		}},
		{"service account " + workload.ServiceAccount, func(o metav1.CreateOptions) error {
			_, err := admin.CoreV1().ServiceAccounts(workload.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta(workload.ServiceAccount)}, o)
			return err
		}},
		{"cluster role " + readerRole, func(o metav1.CreateOptions) error {
			_, err := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
				ObjectMeta: meta(readerRole),
				Rules:      []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: []string{"get", "list", "watch"}}},
			}, o)
			return err
		}},
		{"cluster role binding " + readerRole, func(o metav1.CreateOptions) error {
			_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta(readerRole), Subjects: []rbacv1.Subject{reader, account},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: readerRole},
			}, o)
			return err
		}},
		{"role " + writerRole, func(o metav1.CreateOptions) error {
			_, err := admin.RbacV1().Roles(workload.Namespace).Create(ctx, &rbacv1.Role{
				ObjectMeta: meta(writerRole),
				Rules:      []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}},
			}, o)
			return err
		}},
		{"role binding " + writerRole, func(o metav1.CreateOptions) error {
			_, err := admin.RbacV1().RoleBindings(workload.Namespace).Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: meta(writerRole), Subjects: []rbacv1.Subject{account},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: writerRole},
			}, o)
			return err
		}},
	}
	for _, step := range steps {
		if err := step.create(metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("set up traffic: create %s: %w", step.what, err)
		}
	}

	seconds := int64(tokenSeconds)
	request, err := admin.CoreV1().ServiceAccounts(workload.Namespace).CreateToken(ctx, workload.ServiceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("set up traffic: request a token for %s: %w", workload.ServiceAccountUser, err)
	}
	return request.Status.Token, nil
}
