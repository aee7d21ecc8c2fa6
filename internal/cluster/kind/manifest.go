package kind

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// apiserverPod is the static pod of a server, and its program. Its manifest has the same name.
const apiserverPod = "kube-apiserver"

// incarnationAnnotation makes the manifests of two incarnations differ, because a kubelet restarts
// a static pod only when its manifest has changed.
const incarnationAnnotation = "skewproof/incarnation"

// edit returns the manifest of a static pod for an incarnation. Its first container runs the image.
// change makes further changes to that container; nil means none.
func edit(manifest []byte, image string, incarnation int, change func(*corev1.Container)) ([]byte, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		return nil, fmt.Errorf("read the static-pod manifest: %w", err)
	}
	if len(pod.Spec.Containers) == 0 {
		return nil, fmt.Errorf("the static-pod manifest of %q has no container", pod.Name)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, incarnationAnnotation, fmt.Sprint(incarnation))
	pod.Spec.Containers[0].Image = image
	if change != nil {
		change(&pod.Spec.Containers[0])
	}
	return yaml.Marshal(pod)
}

// commandLine returns the command line of the first container of a static-pod manifest after a
// change of that container, without the program's name.
func commandLine(manifest []byte, change func(*corev1.Container)) ([]string, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		return nil, fmt.Errorf("read the static-pod manifest: %w", err)
	}
	if len(pod.Spec.Containers) == 0 || len(pod.Spec.Containers[0].Command) == 0 {
		return nil, fmt.Errorf("the static-pod manifest of %q has no container with a command", pod.Name)
	}
	change(&pod.Spec.Containers[0])
	return pod.Spec.Containers[0].Command[1:], nil
}

// setUp replaces the arguments of a kube-apiserver in which servers may differ.
func setUp(container *corev1.Container, own []Argument) {
	container.Command = slices.DeleteFunc(container.Command, func(argument string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		return slices.Contains(ownNames, name)
	})
	for _, a := range own {
		container.Command = append(container.Command, "--"+a.Name+"="+a.Value)
	}
}
