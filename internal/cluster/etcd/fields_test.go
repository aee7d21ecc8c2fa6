package etcd

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFieldsWithAValueAreListed(t *testing.T) {
	replicas := int32(0)
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one"}, {Name: "two", Command: []string{"x", "y"}}}}},
		},
	}
	d.Name, d.UID, d.Generation, d.Labels = "x", "u", 3, map[string]string{"a": ""}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	want := []string{
		"metadata.labels.a", "metadata.name", "spec.replicas", "spec.template.spec.containers[0].name", "spec.template.spec.containers[1].command[0]",
		"spec.template.spec.containers[1].command[1]", "spec.template.spec.containers[1].name",
	}
	if got := fieldsOf(encoded(t, inProtobuf, d)); !slices.Equal(got, want) {
		t.Errorf("in protobuf: %q, want %q", got, want)
	}
	if got := fieldsOf(encoded(t, inJSON, d)); !slices.Equal(got, want) {
		t.Errorf("in JSON: %q, want %q", got, want)
	}
	if got := fieldsOf([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"none":null,"list":[{"a":1}]}}`)); !slices.Equal(got, []string{"metadata.name", "spec.list[0].a"}) {
		t.Errorf("of a custom resource: %q", got)
	}
	for _, unknown := range []string{"k8s\x00\n\x0e\n\x02v9\x12\x07Unknown", "{", "secret"} {
		if got := fieldsOf([]byte(unknown)); got != nil {
			t.Errorf("of %q: %q", unknown, got)
		}
	}
}
