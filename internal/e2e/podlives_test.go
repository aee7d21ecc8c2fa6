package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/internal/history"
)

// podLives are the pods that must have existed in a namespace. No other pod may have existed. A
// DaemonSet has one pod on each node, an Indexed Job one for each index, and a Deployment its
// replicas. Only evicted pods may have been deleted.
type podLives struct {
	namespace                    string
	nodes, completions, replicas int
	evicted                      []string // UIDs of pods of the Deployment
}

// podLife is the content of etcd about one pod.
type podLife struct {
	name, owner string // kind of the owner
	deleted     bool
}

// livesOf returns the pods of a namespace by UID, in the order of their creation.
func livesOf(changes []history.Object, namespace string) (uids []string, lives map[string]*podLife) {
	lives = map[string]*podLife{}
	for _, o := range changes {
		if o.Kind != "Pod" || o.Namespace != namespace {
			continue
		}
		life := lives[o.UID]
		if life == nil {
			life = &podLife{name: o.Name}
			lives[o.UID] = life
			uids = append(uids, o.UID)
		}
		if len(o.Owners) > 0 {
			life.owner = o.Owners[0].Kind
		}
		life.deleted = life.deleted || o.Deleting || o.Gone
	}
	return uids, lives
}

// wrongLives names the pods that existed or were deleted and should not have been, and the pods
// that are missing.
func wrongLives(changes []history.Object, want podLives) (wrong []string) {
	uids, lives := livesOf(changes, want.namespace)
	ofKind, ofIndex, evicted := map[string]int{}, map[int]int{}, 0
	for _, uid := range uids {
		life := lives[uid]
		ofKind[life.owner]++
		if slices.Contains(want.evicted, uid) {
			evicted++
			if !life.deleted {
				wrong = append(wrong, fmt.Sprintf("pod %s was evicted, and etcd still has it", life.name))
			}
		} else if life.deleted {
			wrong = append(wrong, fmt.Sprintf("pod %s of a %s was deleted", life.name, life.owner))
		}
		if life.owner == "Job" {
			ofIndex[indexOf(life.name)]++
		}
	}
	for index := range want.completions {
		if n := ofIndex[index]; n != 1 {
			wrong = append(wrong, fmt.Sprintf("index %d of the Job had %d pods, want 1", index, n))
		}
	}
	if evicted != len(want.evicted) {
		wrong = append(wrong, fmt.Sprintf("etcd has had %d of the %d pods that were evicted", evicted, len(want.evicted)))
	}
	wanted := map[string]int{"DaemonSet": want.nodes, "Job": want.completions, "ReplicaSet": want.replicas + len(want.evicted)}
	for _, kind := range slices.Sorted(maps.Keys(ofKind)) {
		if _, ok := wanted[kind]; !ok {
			wrong = append(wrong, fmt.Sprintf("%d pods had an owner of kind %q", ofKind[kind], kind))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		if ofKind[kind] != wanted[kind] {
			wrong = append(wrong, fmt.Sprintf("a %s had %d pods in all, want %d", kind, ofKind[kind], wanted[kind]))
		}
	}
	return wrong
}

// indexOf returns the index in the name of a pod of an Indexed Job, JOB-INDEX-RANDOM; -1 if it has
// none.
func indexOf(pod string) int {
	if parts := strings.Split(pod, "-"); len(parts) >= 3 {
		if index, err := strconv.Atoi(parts[len(parts)-2]); err == nil {
			return index
		}
	}
	return -1
}

// born counts the pods that were created in a period and whose owner is of a kind.
func born(changes []history.Object, namespace, owner string, from, to history.Time) (n int) {
	seen := map[string]bool{}
	for _, o := range changes {
		if o.Kind != "Pod" || o.Namespace != namespace || seen[o.UID] {
			continue
		}
		seen[o.UID] = true
		if len(o.Owners) > 0 && o.Owners[0].Kind == owner && o.At >= from && o.At <= to {
			n++
		}
	}
	return n
}

// disturbedPods compares pods that must not have changed or been interrupted, and describes the
// differences.
func disturbedPods(before, after []corev1.Pod) (wrong []string) {
	if len(before) != len(after) {
		wrong = append(wrong, fmt.Sprintf("there are %d pods, before %d", len(after), len(before)))
	}
	for _, was := range before {
		i := slices.IndexFunc(after, func(p corev1.Pod) bool { return p.UID == was.UID })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("pod %s with UID %s is gone", was.Name, was.UID))
			continue
		}
		is := after[i]
		if n := restarts(is); n > 0 {
			wrong = append(wrong, fmt.Sprintf("pod %s: its container was restarted %d times", is.Name, n))
		}
		if since := readySince(is.Status.Conditions); since == "" || since != readySince(was.Status.Conditions) {
			wrong = append(wrong, fmt.Sprintf("pod %s: ready since %q, before %q", is.Name, since, readySince(was.Status.Conditions)))
		}
	}
	return wrong
}

// disturbedNodes names the nodes that were not ready all the time. It sees this because each change
// of a node's condition records its time.
func disturbedNodes(before, after []corev1.Node) (wrong []string) {
	since := func(n corev1.Node) string {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return c.LastTransitionTime.UTC().Format(time.RFC3339)
			}
		}
		return ""
	}
	for _, was := range before {
		i := slices.IndexFunc(after, func(n corev1.Node) bool { return n.UID == was.UID })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("node %s with UID %s is gone", was.Name, was.UID))
		} else if is := since(after[i]); is == "" || is != since(was) {
			wrong = append(wrong, fmt.Sprintf("node %s: ready since %q, before %q", was.Name, is, since(was)))
		}
	}
	return wrong
}

// readySince returns the time since which a pod is ready; empty if the pod is not ready.
func readySince(conditions []corev1.PodCondition) string {
	for _, c := range conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// restarts counts the restarts of a pod's containers.
func restarts(pod corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// incomplete describes what is missing in an Indexed Job that has ended.
func incomplete(job *batchv1.Job) (wrong []string) {
	want := *job.Spec.Completions
	if job.Status.Succeeded != want || job.Status.Failed != 0 || job.Status.Active != 0 {
		wrong = append(wrong, fmt.Sprintf("the Job has %d succeeded, %d failed and %d active pods, want %d succeeded",
			job.Status.Succeeded, job.Status.Failed, job.Status.Active, want))
	}
	if all := fmt.Sprintf("0-%d", want-1); job.Status.CompletedIndexes != all {
		wrong = append(wrong, fmt.Sprintf("the Job has completed the indexes %q, want %q", job.Status.CompletedIndexes, all))
	}
	return wrong
}

// The test checks a correct history of pods, and that each planted defect in it is found.
func TestWrongLivesOfPodsAreFound(t *testing.T) {
	pod := func(uid, name, owner string) history.Object {
		return history.Object{Kind: "Pod", Namespace: "n", Name: name, UID: uid, Owners: []history.Owner{{Kind: owner}}}
	}
	gone := func(o history.Object) history.Object { o.Gone = true; return o }
	story := func(more ...history.Object) []history.Object {
		return append([]history.Object{
			pod("d1", "daemon-x", "DaemonSet"), pod("d2", "daemon-y", "DaemonSet"),
			pod("j0", "indexed-0-x", "Job"), pod("j1", "indexed-1-x", "Job"), pod("j0", "indexed-0-x", "Job"),
			pod("r1", "r-x", "ReplicaSet"), gone(pod("r1", "r-x", "ReplicaSet")), pod("r2", "r-y", "ReplicaSet"),
		}, more...)
	}
	deleting := pod("d1", "daemon-x", "DaemonSet")
	deleting.Deleting = true
	elsewhere := pod("e", "daemon-z", "DaemonSet")
	elsewhere.Namespace = "other"
	want := podLives{namespace: "n", nodes: 2, completions: 2, replicas: 1, evicted: []string{"r1"}}
	for name, c := range map[string]struct {
		changes []history.Object
		want    podLives
		found   string
	}{
		"right":                          {story(), want, ""},
		"in another namespace":           {story(elsewhere), want, ""},
		"a pod of the DaemonSet deleted": {story(gone(pod("d2", "daemon-y", "DaemonSet"))), want, "pod daemon-y of a DaemonSet was deleted"},
		"one begins to be deleted":       {story(deleting), want, "pod daemon-x of a DaemonSet was deleted"},
		"one more on a node":             {story(pod("d3", "daemon-z", "DaemonSet")), want, "a DaemonSet had 3 pods in all, want 2"},
		"none on a node":                 {story()[1:], want, "a DaemonSet had 1 pods in all, want 2"},
		"an index twice":                 {story(pod("j2", "indexed-1-y", "Job")), want, "index 1 of the Job had 2 pods, want 1"},
		"an index never":                 {slices.Delete(story(), 3, 4), want, "index 1 of the Job had 0 pods, want 1"},
		"a pod of the Job deleted":       {story(gone(pod("j0", "indexed-0-x", "Job"))), want, "pod indexed-0-x of a Job was deleted"},
		"deleted and not evicted":        {story(gone(pod("r2", "r-y", "ReplicaSet"))), want, "pod r-y of a ReplicaSet was deleted"},
		"evicted and still there":        {slices.Delete(story(), 6, 7), want, "pod r-x was evicted, and etcd still has it"},
		"evicted and never seen":         {slices.Delete(story(), 5, 7), want, "etcd has had 0 of the 1 pods that were evicted"},
		"of nobody":                      {story(history.Object{Kind: "Pod", Namespace: "n", Name: "p", UID: "p"}), want, `1 pods had an owner of kind ""`},
		"nothing recorded":               {nil, want, "a DaemonSet had 0 pods in all, want 2"},
	} {
		wrong := wrongLives(c.changes, c.want)
		if c.found == "" && len(wrong) > 0 || c.found != "" && !slices.Contains(wrong, c.found) {
			t.Errorf("%s: found %q, want %q", name, wrong, c.found)
		}
	}
	if n := born([]history.Object{{Kind: "Pod", Namespace: "n", UID: "1", At: 5, Owners: []history.Owner{{Kind: "Job"}}}, {Kind: "Pod", Namespace: "n", UID: "1", At: 15},
		{Kind: "Pod", Namespace: "n", UID: "2", At: 15, Owners: []history.Owner{{Kind: "Job"}}}, {Kind: "Pod", Namespace: "n", UID: "3", At: 16, Owners: []history.Owner{{Kind: "DaemonSet"}}},
		{Kind: "Pod", Namespace: "n", UID: "4", At: 25, Owners: []history.Owner{{Kind: "Job"}}}}, "n", "Job", 10, 20); n != 1 {
		t.Errorf("%d pods of the Job were born in the time, want 1", n)
	}
}

func TestDisturbedPodsAndNodesAreFound(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	later := metav1.NewTime(time.Unix(1001, 0))
	pod := func(change func(*corev1.Pod)) []corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}, Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
		}}
		change(&p)
		return []corev1.Pod{p}
	}
	same := func(*corev1.Pod) {}
	for found, after := range map[string][]corev1.Pod{
		"":                                     pod(same),
		"pod p with UID 1 is gone":             pod(func(p *corev1.Pod) { p.UID = "2" }),
		"there are 0 pods, before 1":           nil,
		"its container was restarted 1 times":  pod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 }),
		"ready since \"1970-01-01T00:16:41Z\"": pod(func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = later }),
		"ready since \"\"":                     pod(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }),
	} {
		if wrong := disturbedPods(pod(same), after); (found == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "\n"), found) {
			t.Errorf("found %q, want %q", wrong, found)
		}
	}
	node := func(uid string, status corev1.ConditionStatus, since metav1.Time) []corev1.Node {
		n := corev1.Node{}
		n.Name, n.UID = "n", "1"
		if uid != "" {
			n.UID = "2"
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: since}}
		return []corev1.Node{n}
	}
	good := node("", corev1.ConditionTrue, at)
	for found, after := range map[string][]corev1.Node{
		"":                         good,
		"is gone":                  node("2", corev1.ConditionTrue, at),
		"ready since \"1970":       node("", corev1.ConditionTrue, later),
		"ready since \"\", before": node("", corev1.ConditionUnknown, later),
	} {
		if wrong := disturbedNodes(good, after); (found == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "\n"), found) {
			t.Errorf("found %q, want %q", wrong, found)
		}
	}
}

func TestAJobThatIsNotCompleteIsFound(t *testing.T) {
	completions := int32(3)
	job := func(change func(*batchv1.JobStatus)) *batchv1.Job {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Completions: &completions}, Status: batchv1.JobStatus{Succeeded: 3, CompletedIndexes: "0-2"}}
		change(&j.Status)
		return j
	}
	for found, j := range map[string]*batchv1.Job{
		"":                        job(func(*batchv1.JobStatus) {}),
		"2 succeeded":             job(func(s *batchv1.JobStatus) { s.Succeeded = 2 }),
		"1 failed":                job(func(s *batchv1.JobStatus) { s.Failed = 1 }),
		"1 active":                job(func(s *batchv1.JobStatus) { s.Active = 1 }),
		`the indexes "0,2", want`: job(func(s *batchv1.JobStatus) { s.CompletedIndexes = "0,2" }),
	} {
		if wrong := incomplete(j); (found == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, "\n"), found) {
			t.Errorf("found %q, want %q", wrong, found)
		}
	}
}
