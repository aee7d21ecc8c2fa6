package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	utilexec "k8s.io/client-go/util/exec"
)

// through uses the pods through one server.
func (w *kindPods) through(t *testing.T, server string) {
	config, err := w.cluster.Direct(server)
	must(t, err)
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	for _, pod := range w.daemons {
		for _, p := range streamProtocols {
			t.Run(fmt.Sprintf("exec by %s on %s", p.name, pod.Spec.NodeName), func(t *testing.T) { execIn(t, p, config, pod) })
		}
		t.Run("logs -f from "+pod.Spec.NodeName, func(t *testing.T) { followLog(t, clients, pod) })
		t.Run("eviction against the budget on "+pod.Spec.NodeName, func(t *testing.T) { evictInVain(t, clients, pod) })
	}
	t.Run("eviction", func(t *testing.T) { w.evict(t, clients) })
}

// execIn checks that bytes arrive in both directions, and that the client ends when the command
// ends.
func execIn(t *testing.T, p streamProtocol, config *rest.Config, pod corev1.Pod) {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	sent := random(64 << 10)
	var out, errOut bytes.Buffer
	err := p.execute(limited(t), config, name, stdio{Stdin: bytes.NewReader(sent), Stdout: &out, Stderr: &errOut}, inPod, "echo", "two words")
	if want := append([]byte("two words\n"), sent...); err != nil || !bytes.Equal(out.Bytes(), want) || errOut.Len() > 0 {
		t.Errorf("%d bytes came back, want %d, and %q on stderr; error %v", out.Len(), len(want), &errOut, err)
	}
	var exit utilexec.CodeExitError
	if err := p.execute(limited(t), config, name, stdio{Stdout: io.Discard}, inPod, "exit", "42"); !errors.As(err, &exit) || exit.Code != 42 {
		t.Errorf("a command that exits with 42: the client says %v", err)
	}
}

// followLog checks that lines written after the request arrive, and that no line is missing.
func followLog(t *testing.T, clients *kubernetes.Clientset, pod corev1.Pod) {
	options := &corev1.PodLogOptions{Follow: true, TailLines: new(int64(1))}
	log, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(limited(t))
	must(t, err)
	defer func() { _ = log.Close() }()
	read := bufio.NewScanner(log)
	first := 0
	for i := range 3 {
		var number int
		if !read.Scan() {
			t.Fatalf("%d lines, then error %v; want 3", i, read.Err())
		}
		if _, err := fmt.Sscanf(read.Text(), "line %d", &number); err != nil {
			t.Fatalf("%q: %v", read.Text(), err)
		}
		if i == 0 {
			first = number
		}
		if number != first+i {
			t.Errorf("line %d after line %d, want line %d", number, first+i-1, first+i)
		}
	}
}

func evictPod(t *testing.T, clients *kubernetes.Clientset, pod corev1.Pod) error {
	return clients.PolicyV1().Evictions(pod.Namespace).Evict(limited(t), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

// evictInVain checks that a server refuses an eviction that a budget forbids. The caller checks
// later that the pod still lives.
func evictInVain(t *testing.T, clients *kubernetes.Clientset, pod corev1.Pod) {
	if err := evictPod(t, clients, pod); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("eviction of %s: %v, want 429 for its budget", pod.Name, err)
	}
}

// evict checks that a pod that may be evicted is deleted, and that a new pod replaces it.
func (w *kindPods) evict(t *testing.T, clients *kubernetes.Clientset) {
	all := w.list(t, replaceable)
	i := slices.IndexFunc(all, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && readySince(p.Status.Conditions) != "" })
	if i < 0 {
		t.Fatal("no pod of the Deployment is ready")
	}
	if err := evictPod(t, clients, all[i]); err != nil {
		t.Fatalf("eviction of %s: %v", all[i].Name, err)
	}
	w.evicted = append(w.evicted, string(all[i].UID))
	eventually(t, "pod "+all[i].Name+" is gone", time.Minute, func() bool {
		now, err := w.own(t).CoreV1().Pods(podsNamespace).Get(t.Context(), all[i].Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.UID != all[i].UID
	})
	w.settled(t)
}
