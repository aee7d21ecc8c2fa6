package kind

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// The static pods of a server. Their manifests have the same names.
const (
	apiserverPod = "kube-apiserver"
	proxyPod     = "skewproof-proxy"
)

// OperatorImage is the image that 'make image' makes, for clusters that are no run. It is not
// published anywhere.
const OperatorImage = "skewproof/proxy:latest"

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

// setUp replaces the probed port of a kube-apiserver, and its arguments in which servers may
// differ.
func setUp(container *corev1.Container, own []Argument) {
	port := strconv.Itoa(securePort)
	container.Command = slices.DeleteFunc(container.Command, func(argument string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		return slices.Contains(ownNames, name)
	})
	for _, a := range own {
		if a.Name == "secure-port" {
			port = a.Value
			continue
		}
		container.Command = append(container.Command, "--"+a.Name+"="+a.Value)
	}
	container.Command = append(container.Command, "--secure-port="+port)
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		if probe != nil && probe.HTTPGet != nil {
			probe.HTTPGet.Port = intstr.Parse(port)
		}
	}
}

// ProxyManifest returns the static pod of the sidecar. It needs no image of its own: the program is
// a static file of the node, and runs in the image of a kube-apiserver.
func ProxyManifest(version string) ([]byte, error) {
	var mounts []corev1.VolumeMount
	var volumes []corev1.Volume
	mount := func(name, path string, kind corev1.HostPathType) {
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: path != recordsDir})
		volumes = append(volumes, corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}})
	}
	mount("program", proxyProgram, corev1.HostPathFile)
	mount("pki", pkiDir, corev1.HostPathDirectory)
	mount("records", recordsDir, corev1.HostPathDirectoryOrCreate)
	return podYAML(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: proxyPod, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"component": proxyPod, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{
			HostNetwork:       true,
			PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{
				Name: proxyPod, Image: apiserverImage(version), ImagePullPolicy: corev1.PullIfNotPresent,
				Command: append([]string{proxyProgram}, ProxyArguments()...), VolumeMounts: mounts,
			}},
			Volumes: volumes,
		},
	})
}

// podYAML writes a pod as YAML, without the empty fields that its type always has.
func podYAML(pod corev1.Pod) ([]byte, error) {
	manifest, err := yaml.Marshal(pod)
	for _, empty := range []string{"    resources: {}\n", "status: {}\n"} {
		manifest = bytes.Replace(manifest, []byte(empty), nil, 1)
	}
	return manifest, err
}
