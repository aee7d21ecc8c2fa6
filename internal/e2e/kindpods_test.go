package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// These are the objects of the test, in their own namespace. The name is also the value of the
// label app.
const (
	podsNamespace  = "skewproof-pods"
	daemonName     = "daemon"    // a DaemonSet, whose budget allows no eviction
	replaceable    = "evictable" // a Deployment, whose budget allows one eviction at a time
	indexedJob     = "indexed"   // an Indexed Job
	jobCompletions = 16          // each takes workFor
	jobParallelism = 2           // enough for pods to end and start during the whole upgrade
	workFor        = "15s"       // see kindconfigs/image/inpod
	replicas       = int32(2)    // of the Deployment
	inPod          = "/usr/local/bin/inpod"
)

// Pods run on kubelets while the control plane is upgraded under load, with the controllers of the
// cluster. Each pod must continue undisturbed. kubectl must reach the pods through every server,
// both while the versions are mixed and afterwards.
func TestPodsThroughAnUpgradeOnKind(t *testing.T) {
	needsKind(t) // called here, so that the whole test is skipped
	for _, subject := range []string{scenario.SubjectBuiltin, scenario.SubjectReference} {
		t.Run(subject, func(t *testing.T) {
			var w *kindPods
			h, report, replacements := upgradeOnKind(t, subject, func(v *visited) (func(int), func()) {
				w = &kindPods{t: t, cluster: v.Cluster}
				return w.visit, w.over
			})
			for _, wrong := range wrongLives(h.Objects, podLives{
				namespace: podsNamespace, nodes: len(report.Servers), completions: jobCompletions, replicas: int(replicas), evicted: w.evicted,
			}) {
				t.Error(wrong)
			}
			if n := born(h.Objects, podsNamespace, "Job", replacements[0].end, replacements[len(replacements)-1].start); n == 0 {
				t.Error("no pod of the Job was made while the versions were mixed: the test proves nothing about it")
			}
			upgradedOnKind(t, subject, report)
			if v := verdict(t, report, "NoWrongfulDeletion"); v.Outcome != invariant.OutcomePass {
				t.Errorf("NoWrongfulDeletion: %s, want %s %s", v.Outcome, invariant.OutcomePass, v.Reason)
			}
		})
	}
}

// upgradedOnKind checks the verdicts on the upgrade itself. It ignores Available, like
// [TestRestartDuringPartitionOnKind].
func upgradedOnKind(t *testing.T, subject string, report reports.RunReport) {
	t.Helper()
	if subject == scenario.SubjectBuiltin {
		onlyCSINodeStatus(t, report, "NoFalseNotFound", "DiscoveryAccessible")
	}
	for _, i := range report.Invariants {
		known := subject == scenario.SubjectBuiltin && i.New == 0 || ofNoProxy(i)
		if i.Grade == invariant.GradeCore && (i.Outcome == invariant.OutcomeFail && !known || i.Outcome == invariant.OutcomeInconclusive && i.About) {
			t.Errorf("%s: %s %s", i.Name, i.Outcome, i.Reason)
			for _, e := range i.Evidence {
				t.Logf("%s, %d times: %s", i.Name, e.Count, e.Sentence)
			}
		}
	}
	for _, s := range report.Servers {
		if n := len(s.Versions); n != 2 {
			t.Errorf("server %s ran %d versions, want the old and the new one: %+v", s.Name, n, s.Versions)
		}
	}
}

// kindPods are the pods of the test and the facts that it has recorded about them.
type kindPods struct {
	t       *testing.T
	cluster *kind.Cluster
	nodes   []corev1.Node // before the first replacement
	daemons []corev1.Pod  // before the first replacement
	evicted []string      // UIDs
}

// own is the administrator's client. It does not use the links.
func (w *kindPods) own(t *testing.T) *kubernetes.Clientset { return client(t, w.cluster, "a") }

// visit is called with the number of servers replaced so far.
func (w *kindPods) visit(replaced int) {
	if replaced == 0 {
		w.create(w.t)
		return
	}
	for _, server := range w.cluster.Servers {
		w.t.Run(fmt.Sprintf("%d replaced, through %s", replaced, server.Name), func(t *testing.T) { w.through(t, server.Name) })
	}
}

// create creates the objects. It returns when all pods run and the status of the budgets is known.
func (w *kindPods) create(t *testing.T) {
	t.Helper()
	ctx, admin := t.Context(), w.own(t)
	_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: podsNamespace}}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the namespace has a service account and the cluster's authority", time.Minute, func() bool {
		_, account := admin.CoreV1().ServiceAccounts(podsNamespace).Get(ctx, "default", metav1.GetOptions{})
		_, authority := admin.CoreV1().ConfigMaps(podsNamespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return account == nil && authority == nil
	})
	_, err = admin.AppsV1().DaemonSets(podsNamespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: daemonName},
		Spec:       appsv1.DaemonSetSpec{Selector: labelled(daemonName), Template: podTemplate(daemonName, corev1.RestartPolicyAlways)},
	}, metav1.CreateOptions{})
	must(t, err)
	number := replicas
	_, err = admin.AppsV1().Deployments(podsNamespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: replaceable},
		Spec:       appsv1.DeploymentSpec{Replicas: &number, Selector: labelled(replaceable), Template: podTemplate(replaceable, corev1.RestartPolicyAlways)},
	}, metav1.CreateOptions{})
	must(t, err)
	nodes := len(w.cluster.Servers)
	for name, least := range map[string]int32{daemonName: int32(nodes), replaceable: replicas - 1} {
		available := intstr.FromInt32(least)
		_, err = admin.PolicyV1().PodDisruptionBudgets(podsNamespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &available, Selector: labelled(name)},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	mode, completions, parallelism := batchv1.IndexedCompletion, int32(jobCompletions), int32(jobParallelism)
	_, err = admin.BatchV1().Jobs(podsNamespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: indexedJob},
		Spec: batchv1.JobSpec{
			CompletionMode: &mode, Completions: &completions, Parallelism: &parallelism,
			Template: podTemplate(indexedJob, corev1.RestartPolicyNever, "work", workFor),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	w.settled(t)
	eventually(t, "every node is ready", 2*time.Minute, func() bool { // a DaemonSet does not wait for its pods
		w.nodes = w.listNodes(t)
		return len(disturbedNodes(w.nodes, w.nodes)) == 0
	})
	w.daemons = w.list(t, daemonName)
	if len(w.daemons) != nodes {
		t.Fatalf("the DaemonSet has %d pods, want one on each of %d nodes", len(w.daemons), nodes)
	}
}

// settled waits until all wanted pods run and the budgets count them.
func (w *kindPods) settled(t *testing.T) {
	t.Helper()
	ctx, admin, nodes := t.Context(), w.own(t), int32(len(w.cluster.Servers))
	defer func() {
		if t.Failed() {
			w.tell(t)
		}
	}()
	eventually(t, "the DaemonSet has a pod on every node, the Deployment has two, and their budgets count them", 2*time.Minute, func() bool {
		daemon, err1 := admin.AppsV1().DaemonSets(podsNamespace).Get(ctx, daemonName, metav1.GetOptions{})
		deployment, err2 := admin.AppsV1().Deployments(podsNamespace).Get(ctx, replaceable, metav1.GetOptions{})
		kept, err3 := admin.PolicyV1().PodDisruptionBudgets(podsNamespace).Get(ctx, daemonName, metav1.GetOptions{})
		spared, err4 := admin.PolicyV1().PodDisruptionBudgets(podsNamespace).Get(ctx, replaceable, metav1.GetOptions{})
		return err1 == nil && err2 == nil && err3 == nil && err4 == nil &&
			daemon.Status.NumberReady == nodes && deployment.Status.ReadyReplicas == replicas && deployment.Status.Replicas == replicas &&
			kept.Status.CurrentHealthy == nodes && kept.Status.DisruptionsAllowed == 0 && spared.Status.DisruptionsAllowed == 1
	})
}

// tell logs the reasons why pods do not run.
func (w *kindPods) tell(t *testing.T) {
	for _, name := range []string{daemonName, replaceable, indexedJob} {
		for _, pod := range w.list(t, name) {
			t.Logf("pod %s on %s: %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Message)
			for _, c := range pod.Status.ContainerStatuses {
				if c.State.Waiting != nil {
					t.Logf("it waits: %s: %s (node images of before: 'make kind-images' makes them anew)", c.State.Waiting.Reason, c.State.Waiting.Message)
				}
			}
		}
	}
}

// over is called after the end of the load.
func (w *kindPods) over() {
	w.t.Run("afterwards", func(t *testing.T) {
		var job *batchv1.Job
		eventually(t, "the Job is complete", 3*time.Minute, func() bool {
			var err error
			job, err = w.own(t).BatchV1().Jobs(podsNamespace).Get(t.Context(), indexedJob, metav1.GetOptions{})
			return err == nil && job.Status.CompletionTime != nil
		})
		w.settled(t)
		for _, wrong := range slices.Concat(incomplete(job), disturbedPods(w.daemons, w.list(t, daemonName)), disturbedNodes(w.nodes, w.listNodes(t))) {
			t.Error(wrong)
		}
		for _, name := range []string{replaceable, indexedJob} {
			for _, pod := range w.list(t, name) {
				if n := restarts(pod); n > 0 {
					t.Errorf("pod %s: its container was restarted %d times", pod.Name, n)
				}
			}
		}
	})
}

// list returns the pods whose label has the name, by pod name.
func (w *kindPods) list(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	all, err := w.own(t).CoreV1().Pods(podsNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	must(t, err)
	slices.SortFunc(all.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all.Items
}

func (w *kindPods) listNodes(t *testing.T) []corev1.Node {
	t.Helper()
	all, err := w.own(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return all.Items
}

func labelled(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// podTemplate returns a template of pods that run on any node, and that end on a signal.
func podTemplate(name string, restart corev1.RestartPolicy, args ...string) corev1.PodTemplateSpec {
	grace := int64(5)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelled(name).MatchLabels},
		Spec: corev1.PodSpec{
			RestartPolicy: restart, TerminationGracePeriodSeconds: &grace, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: streamsContainer, Image: kind.PodImage, ImagePullPolicy: corev1.PullNever, Args: args}},
		},
	}
}
