package kind

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// behindSidecar lets an operator's kube-apiserver and its sidecar share one port of a node.
//
// In a run, the kube-apiserver behind a sidecar has another port, which the harness asks for the
// ground truth. A kube-apiserver publishes its own port in the kubernetes Service, so in-cluster
// clients would bypass the sidecar there. A run has no such clients; a cluster has.
// Source: k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice/controller.go.
var behindSidecar = Argument{
	Name: "bind-address", Value: "127.0.0.1",
	Why: "The sidecar listens on the same port, at the node's own address (--advertise-address). The kubernetes Service names\n" +
		"that address and that port, so in-cluster clients reach the sidecar; and only the node itself can bypass it.",
}

// OperatorImage is the image that 'make image' makes. It is not published anywhere.
const OperatorImage = "skewproof/proxy:latest"

// adminPort is the port of the sidecar's own health and metrics, on the node's loopback address.
const adminPort = 6440

// OperatorProxyManifest is the static pod of the sidecar for an operator's cluster: it runs
// [OperatorImage] and writes nothing to a disk. It fits the kube-apiserver of
// [Configuration.ExtraArgs].
func OperatorProxyManifest() ([]byte, error) {
	directory, yes, no := corev1.HostPathDirectory, true, false
	health := func(path string, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1", Port: intstr.FromInt32(adminPort), Path: path}},
			PeriodSeconds:    5,
			TimeoutSeconds:   15,
			FailureThreshold: failures,
		}
	}
	return podYAML(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: proxyPod, Namespace: metav1.NamespaceSystem, Labels: proxyLabels()},
		Spec: corev1.PodSpec{
			HostNetwork:       true,
			PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{
				Name: proxyPod, Image: OperatorImage, ImagePullPolicy: corev1.PullNever,
				Args: operatorArguments(),
				Env: []corev1.EnvVar{{
					Name: "NODE_ADDRESS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}},
				}, {
					// Go's garbage collector runs more often near the limit.
					Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}},
				}},
				// The limit keeps a sidecar that needs too much from taking the memory of the
				// kube-apiserver and of etcd.
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
				},
				SecurityContext: &corev1.SecurityContext{
					// The keys that kubeadm makes can only be read by root.
					RunAsUser: new(int64), AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				LivenessProbe: health("/livez", 8), ReadinessProbe: health("/readyz", 3),
				VolumeMounts: []corev1.VolumeMount{{Name: "pki", MountPath: pkiDir, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{
				Name: "pki", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: pkiDir, Type: &directory}},
			}},
		},
	})
}

// operatorArguments returns the arguments of a run's sidecar, with the addresses of
// [behindSidecar]. The kube-apiserver's certificate need not be valid for the loopback address,
// because the sidecar verifies a host name instead.
func operatorArguments() []string {
	arguments := slices.DeleteFunc(ProxyArguments(), func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"--access-log", "--bind-address", "--upstream", "--find-direct-peers"}, name)
	})
	return append(arguments, "--bind-address=$(NODE_ADDRESS)", "--upstream=https://127.0.0.1:6443",
		"--upstream-server-name=kubernetes.default.svc")
}

// OperatorPatch is kubeadm's patch of the static pod of a kube-apiserver behind a sidecar. kubeadm
// lets kubelets probe at --advertise-address, where the sidecar answers: its end would restart the
// kube-apiserver too.
// Source: GetAPIServerProbeAddress in k8s.io/kubernetes/cmd/kubeadm/app/util/staticpod/utils.go.
const OperatorPatch = `# Kubelets probe the kube-apiserver itself, and not through the sidecar at the node's address.
apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
  namespace: kube-system
spec:
  containers:
    - name: kube-apiserver
      startupProbe: {httpGet: {host: 127.0.0.1}}
      readinessProbe: {httpGet: {host: 127.0.0.1}}
      livenessProbe: {httpGet: {host: 127.0.0.1}}
`
