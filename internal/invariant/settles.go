package invariant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// settles judges the workloads in etcd at the times in which nobody changes their specification
// and nothing disturbs the servers. A new generation of a workload, such as an autoscaler makes,
// begins a new time. A CronJob is no such workload, because it makes Jobs for ever.
//
// A workload that has as many objects as its specification wants must make no further one. So it is
// right that a workload replaces Pods that failed or were deleted, or makes one Pod after another
// as they become ready.
var settles = Invariant{
	Name:     "Settles",
	Grade:    GradeCore,
	Sentence: "A workload whose specification nobody changes stops producing objects once it has as many as the specification wants.",
	Source: "Kubernetes' documentation, controllers: a controller brings the current state closer to the desired state; KEP-4020, " +
		"Motivation: controllers work while versions are mixed. The bounds are ours: ten seconds after a change, and three objects",
	judge:    judgeSettles,
	pressure: []pressure{owners},
}

// workloads are Kubernetes' workloads except CronJobs, with their controllers (k8s.io/kubernetes,
// cmd/kube-controller-manager/names).
var workloads = map[groupKind]string{
	{"apps", "Deployment"}: "deployment-controller", {"apps", "ReplicaSet"}: "replicaset-controller",
	{"apps", "StatefulSet"}: "statefulset-controller", {"apps", "DaemonSet"}: "daemon-set-controller",
	{"batch", "Job"}: "job-controller", {"", "ReplicationController"}: "replication-controller",
}

const (
	// reacts is how long after a change a workload may make any number of objects, and how long
	// after that it must be watched.
	reacts = 10 * time.Second
	// mostSurplus is the number of objects that a workload may make and not need: a controller may
	// act on an old state once or twice.
	mostSurplus = 3
)

func judgeSettles(f *Facts) *tally {
	t := newTally(f)
	early, idle := 0, 0
	for _, o := range f.objects.all {
		controller, ok := workloads[kindOf(o.first())]
		if !ok || o.first().Generation == 0 {
			continue
		}
		made := f.produced(o)
		for _, w := range f.unchanged(o) {
			surplus := f.surplus(o, controller, made, w)
			switch {
			case len(surplus) > mostSurplus && !f.end.Complete: // a fault that is not recorded may have kept the controller from its objects
				t.rule(nil, rulingUnknown)
			case len(surplus) > mostSurplus:
				t.rule(nil, rulingWrong)
				t.unsettled(o, controller, made, surplus)
			case w.to-w.from < 2*reacts:
				early++
				t.rule(nil, rulingOut)
			case !f.atWork(w.to):
				idle++
				t.rule(nil, rulingOut)
			case len(made) > 0:
				t.rule(nil, rulingRight)
			}
		}
	}
	t.fact("workloads that were not watched for long enough after a change or a disturbance", early)
	t.fact("workloads with no controller at work", idle)
	return t
}

func kindOf(o history.Object) groupKind { return groupKind{groupOf(o.APIVersion), o.Kind} }

// produced are the objects that a workload controls, in the order in which they were made.
func (f *Facts) produced(o *object) []*object {
	return slices.DeleteFunc(slices.Clone(f.objects.dependents[o.uid]), func(d *object) bool {
		return !slices.ContainsFunc(d.changes, func(change history.Object) bool {
			return slices.ContainsFunc(change.Owners, func(owner history.Owner) bool { return owner.UID == o.uid && owner.Controls })
		})
	})
}

// unchanged are the times in which an object exists, nobody changes its specification, and nothing
// disturbs the servers.
func (f *Facts) unchanged(o *object) (all []window) {
	add := func(w window) {
		for _, s := range f.steady {
			if both := (window{max(s.from, w.from), min(s.to, w.to)}); both.from < both.to {
				all = append(all, both)
			}
		}
	}
	from, generation := o.first().At, o.first().Generation
	for _, change := range o.changes {
		ends := change.Deleting || change.Gone
		if !ends && change.Generation == generation {
			continue
		}
		add(window{from, change.At})
		if ends {
			return all
		}
		from, generation = change.At, change.Generation
	}
	add(window{from, f.finish})
	return all
}

// surplus are the objects that a workload made in a time, too long after its beginning, when it had
// as many as it wanted. Each deletion before that, by somebody else than its controller, explains
// one of them.
func (f *Facts) surplus(o *object, controller string, made []*object, w window) (surplus []*object) {
	var deleted []int64 // revisions
	for _, d := range made {
		if change, ok := d.deletion(); ok && w.from <= change.At && change.At < w.to &&
			!slices.ContainsFunc(f.deleters(d, change), sentBy(controller)) {
			deleted = append(deleted, change.Revision)
		}
	}
	slices.Sort(deleted)
	for _, d := range made {
		is := d.first()
		switch judged := (window{later(w.from, reacts), w.to}); {
		case is.At < judged.from || is.At >= judged.to || !f.enough(o, made, is):
		case len(deleted) > 0 && deleted[0] < is.Revision:
			deleted = deleted[1:]
		default:
			surplus = append(surplus, d)
		}
	}
	return surplus
}

// sentBy matches the requests of a controller itself.
func sentBy(controller string) senders {
	return func(q *history.Request) bool {
		name, ok := partOfKubernetes(q)
		return ok && name == controller
	}
}

// enough reports whether a workload had as many objects as it wanted when it made another one.
func (f *Facts) enough(o *object, made []*object, another history.Object) bool {
	is, exists := o.at(another.Revision)
	wanted := int64(1) // ReplicaSet or ControllerRevision
	switch {
	case !exists || is.Deleting:
		return false
	case another.Kind != "Pod":
	case is.Kind == "DaemonSet":
		wanted = f.count(f.objects.all, history.Object{Kind: "Node", Revision: another.Revision})
	case is.Replicas == nil:
		return false
	default:
		wanted = *is.Replicas
	}
	return f.count(made, another) >= wanted
}

// count returns how many objects of the kind of another one there were just before that one was
// made. Pods that have ended and objects that are being deleted do not count.
func (f *Facts) count(among []*object, another history.Object) (n int64) {
	for _, o := range among {
		if state, exists := o.at(another.Revision - 1); exists && state.Kind == another.Kind && !state.Deleting && !state.Ended {
			n++
		}
	}
	return n
}

// growth are the times after a change for which evidence says how many objects there are.
var growth = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second}

// unsettled counts a workload that does not stop producing objects.
func (t *tally) unsettled(o *object, controller string, made, surplus []*object) {
	f := t.facts
	last := surplus[len(surplus)-1].first()
	is, _ := o.at(last.Revision)
	since := o.changes[slices.IndexFunc(o.changes, func(change history.Object) bool { return change.Generation == is.Generation })]
	var counts []string
	for _, after := range growth {
		n := 0
		for _, d := range made {
			if at := d.first().At; d.first().Kind == last.Kind && at >= since.At && at <= later(since.At, after) {
				n++
			}
		}
		counts = append(counts, strconv.Itoa(n))
	}
	grew := fmt.Sprintf("%s objects of kind %s after 5, 10, 20 and 30 s", strings.Join(counts, ", "), last.Kind)
	t.fact("made by "+titled(is), grew)
	wrong, act, lacks := "a workload does not stop producing objects", f.maker(last, controller), ""
	if missing := lackedOfTemplate(is, last); len(missing) > 0 && act != nil {
		lacks = fmt.Sprintf(" The object lacks fields of the template: %s.", abridged(strings.Join(missing, ", ")))
		if why, ok := f.dropped(f.byName[act.Server], act.Start, f.gvrOf(last), missing); ok && why.beside {
			wrong = "a workload does not stop producing objects, from which a server drops fields of the template that another version stores"
			lacks += fmt.Sprintf(" By the recorded comparison of both versions, %s.", why)
		}
	}
	t.harmed(harm{
		wrong: wrong, cause: titled(is) + " does not stop producing objects of kind " + last.Kind,
		at: last.At, object: is, unseen: f.gvrOf(last), act: act, graph: []history.Object{is, surplus[0].first(), last},
		sentence: fmt.Sprintf("The specification of %s did not change after %s (revision %d of etcd), and it made %s. The last of them was %s, at %s. "+
			"It had as many as it wanted.%s", titled(is), clock(since.At), since.Revision, grew, titled(last), clock(last.At), lacks),
	})
}

// template is the path of the template of a workload. Its controller copies it into a Pod, or into
// the template of a ReplicaSet.
const template = "spec.template."

// lackedOfTemplate are the fields of the template of a workload that an object made from it lacks.
func lackedOfTemplate(workload, made history.Object) (missing []string) {
	for _, path := range workload.Fields {
		rest, ok := strings.CutPrefix(path, template)
		if made.Kind == "ReplicaSet" {
			rest = path
		}
		if ok && len(made.Fields) > 0 && !slices.Contains(made.Fields, rest) {
			missing = append(missing, rest)
		}
	}
	return missing
}

// maker is the request by which a controller made an object. It is nil if no log has it. A request
// that makes an object does not name it.
func (f *Facts) maker(made history.Object, controller string) (last *history.Request) {
	during := window{later(made.At, -seenLate), later(made.At, settle)}
	for q := range f.sentBefore(during.to) {
		if q.Verb == "create" && q.Subresource == "" && !q.Rerouted && succeeded(q.Status) && q.Namespace == made.Namespace &&
			f.isOf(q.GVR, made) && during.overlaps(window{q.Start, q.End}) && sentBy(controller)(q) {
			last = q
		}
	}
	return last
}
