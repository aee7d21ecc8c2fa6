package e2e

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/skewproof/skewproof/internal/workload"
)

const (
	streamsNode      = "skewproof-kubelet"
	streamsPod       = "skewproof-streams"
	streamsContainer = "main"
)

// streamProtocol is the protocol by which kubectl opens a stream: WebSocket since 1.30, SPDY
// before.
type streamProtocol struct {
	name     string
	executor func(*rest.Config, *url.URL) (remotecommand.Executor, error)
	// forwarder listens on a port of this machine's loopback for each of the pod's ports.
	forwarder func(ctx context.Context, c *rest.Config, u *url.URL, ports []string, ready chan struct{}) (*portforward.PortForwarder, error)
}

var streamProtocols = []streamProtocol{
	{
		"WebSocket",
		func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(c, http.MethodGet, u.String())
		},
		func(ctx context.Context, c *rest.Config, u *url.URL, ports []string, ready chan struct{}) (*portforward.PortForwarder, error) {
			dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, c)
			if err != nil {
				return nil, err
			}
			return portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, localhost, ports, ready, io.Discard, io.Discard)
		},
	},
	{
		"SPDY",
		func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(c, http.MethodPost, u)
		},
		func(ctx context.Context, c *rest.Config, u *url.URL, ports []string, ready chan struct{}) (*portforward.PortForwarder, error) {
			transport, upgrader, err := spdy.RoundTripperFor(c)
			if err != nil {
				return nil, err
			}
			dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
			return portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, localhost, ports, ready, io.Discard, io.Discard)
		},
	},
}

var localhost = []string{"127.0.0.1"}

// ofStreams is a pod in the namespace that [makePod] creates.
func ofStreams(pod string) types.NamespacedName {
	return types.NamespacedName{Namespace: workload.Namespace, Name: pod}
}

// podURL returns the URL of a subresource of the pod, at the server of the configuration.
func podURL(config *rest.Config, pod types.NamespacedName, subresource string, options runtime.Object) (*url.URL, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource(subresource).
		VersionedParams(options, scheme.ParameterCodec).URL(), nil
}

// stdio is the content of a stream. The client does not request a stream that is nil.
type stdio = remotecommand.StreamOptions

// execute runs a command in the pod as kubectl does.
func (p streamProtocol) execute(ctx context.Context, config *rest.Config, pod types.NamespacedName, streams stdio, command ...string) error {
	return p.stream(ctx, config, streams, pod, "exec", &corev1.PodExecOptions{
		Container: streamsContainer, Command: command, TTY: streams.Tty,
		Stdin: streams.Stdin != nil, Stdout: streams.Stdout != nil, Stderr: streams.Stderr != nil,
	})
}

// attach attaches to the container as kubectl does.
func (p streamProtocol) attach(ctx context.Context, config *rest.Config, pod types.NamespacedName, streams stdio) error {
	return p.stream(ctx, config, streams, pod, "attach", &corev1.PodAttachOptions{
		Container: streamsContainer, Stdin: streams.Stdin != nil, Stdout: streams.Stdout != nil, Stderr: streams.Stderr != nil,
	})
}

func (p streamProtocol) stream(ctx context.Context, config *rest.Config, streams stdio, pod types.NamespacedName, sub string, options runtime.Object) error {
	u, err := podURL(config, pod, sub, options)
	if err != nil {
		return err
	}
	executor, err := p.executor(config, u)
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, streams)
}

// makePod creates a pod on a node. The kubelet of the node is at the given address.
func makePod(t *testing.T, admin *kubernetes.Clientset, k *kubelet) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: streamsNode}}
	node, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	must(t, err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.address.Addr().String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(k.address.Port())
	_, err = admin.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	no := false
	_, err = admin.CoreV1().Pods(workload.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: streamsPod},
		Spec: corev1.PodSpec{
			NodeName: streamsNode, ServiceAccountName: workload.ServiceAccount, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: streamsContainer, Image: "image.skewproof.invalid/none:none"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}
