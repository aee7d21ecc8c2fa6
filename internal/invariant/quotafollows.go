package invariant

import (
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// quotaFollows compares what the status of a ResourceQuota says with what etcd has. Only limits of
// the number of objects of a resource (count/RESOURCE.GROUP) are judged: others count what a
// controller computes.
var quotaFollows = Invariant{
	Name:  "QuotaFollows",
	Grade: GradeCore,
	Sentence: "Within a bounded time after the number of objects of a kind in a namespace changed and the last disturbance is " +
		"over, a ResourceQuota that counts these objects shows the right number.",
	Source: "KEP-4020, Motivation and Goals: discovery is complete on every server, so the quota controller finds every kind that it has to " +
		"count; Kubernetes' documentation of resource quotas, object count quota. The bound is that of OrphansCollected: the quota " +
		"controller looks for new resources as often. It is five minutes longer if the resource was defined less than 40 seconds before",
	judge: judgeQuotaFollows,
}

func judgeQuotaFollows(f *Facts) *tally {
	t := newTimedTally(f)
	early := 0
	for _, quota := range f.objects.all {
		for _, count := range quota.last().Counts {
			if unrecorded(count) {
				t.rule(nil, rulingUnknown)
				continue
			}
			for _, steady := range f.numbers(quota, count) {
				due := f.countedBy(count, steady.from)
				state, exists := quota.before(due)
				switch {
				case steady.to <= due:
					t.rule(nil, rulingOut) // the number changed again before the status had to follow
				case f.finish < due:
					early++
					t.rule(nil, rulingOut)
				case !exists || state.Deleting || f.namespaceGoesBy(state.Namespace, due):
					t.rule(nil, rulingNone)
				case says(state, count, steady.number):
					t.rule(nil, rulingRight)
				default:
					t.rule(nil, rulingWrong)
					t.miscounted(state, count, steady, due)
				}
			}
		}
	}
	t.fact("numbers of objects for which the run ended too early", early)
	t.doubtLate(early)
	return t
}

// recounts is the interval at which the quota controller counts all objects again
// (--resource-quota-sync-period of kube-controller-manager).
const recounts = 5 * time.Minute

// countedBy is the time until which the status must show a number that has not changed since a
// time. The quota controller looks for new custom resources every 30 seconds, and watches them from
// then on. Until then it does not notice that an object goes, also if all servers have one version.
// Its next recount is right.
func (f *Facts) countedBy(count history.Count, since history.Time) history.Time {
	for _, o := range f.objects.all {
		d := o.first()
		if isDefinition(d) && d.Name == count.Resource+"."+count.Group && d.At <= since && since < later(d.At, looksAgain) {
			return f.due(later(since, recounts))
		}
	}
	return f.due(since)
}

func isDefinition(o history.Object) bool {
	return o.Kind == "CustomResourceDefinition" && groupOf(o.APIVersion) == "apiextensions.k8s.io"
}

// unrecorded reports whether a quota counts what the history leaves out: Leases and events.
func unrecorded(c history.Count) bool { return c.Resource == "leases" || c.Resource == "events" }

// steadyNumber is a time in which the number of objects that a quota counts did not change.
type steadyNumber struct {
	window
	number int64
}

// numbers returns the times in which the number of objects did not change. They cover the time from
// the creation of the quota to its removal.
func (f *Facts) numbers(quota *object, count history.Count) []steadyNumber {
	var changes []history.Object
	for _, o := range f.objects.in[quota.first().Namespace] {
		if f.isOf(history.GVR{Group: count.Group, Resource: count.Resource}, o.first()) {
			changes = append(changes, o.first())
			if !o.remains() {
				changes = append(changes, o.last())
			}
		}
	}
	slices.SortFunc(changes, changeOrder)
	end := forever
	if !quota.remains() {
		end = quota.last().At
	}
	current := steadyNumber{window{quota.first().At, end}, 0}
	var out []steadyNumber
	for _, change := range changes {
		if change.At >= end {
			break
		}
		if change.At > current.from {
			out = append(out, steadyNumber{window{current.from, change.At}, current.number})
			current.from = change.At
		}
		if change.Gone {
			current.number--
		} else {
			current.number++
		}
	}
	return append(out, current)
}

// namespaceGoesBy reports whether the namespace of that name was being deleted, or gone, at a time.
func (f *Facts) namespaceGoesBy(name string, at history.Time) bool {
	goes := false
	for _, o := range f.objects.namespaces[name] {
		if o.first().At <= at { // of several, the last that was made
			state, exists := o.before(at)
			goes = !exists || state.Deleting
		}
	}
	return goes
}

// says reports whether the status of a quota gives that number for a count.
func says(quota history.Object, count history.Count, number int64) bool {
	used, known := usedOf(quota, count)
	return known && used == number
}

// usedOf is the number that the status of a quota gives for a count. known is false if the status
// gives none.
func usedOf(quota history.Object, count history.Count) (used int64, known bool) {
	for _, c := range quota.Counts {
		if c.Group == count.Group && c.Resource == count.Resource && c.Used != nil {
			return *c.Used, true
		}
	}
	return 0, false
}

// miscounted counts a quota that does not say how many objects there are.
func (t *tally) miscounted(quota history.Object, count history.Count, steady steadyNumber, due history.Time) {
	says := "does not say how many of these are used, so servers refuse to create any"
	if used, known := usedOf(quota, count); known {
		says = fmt.Sprintf("says that %d are used", used)
	}
	var misled *wrongAnswer
	if versions := t.facts.versionsOf(history.GVR{Group: count.Group, Resource: count.Resource}); len(versions) > 0 {
		misled = t.facts.unlisted(controllerNamed(quotaController), versions[0], window{due, due})
	}
	t.harmed(harm{
		wrong: "a quota does not say how many objects there are", cause: fmt.Sprintf("%s miscounts %s", titled(quota), count),
		at: due, object: quota, misled: misled, graph: []history.Object{quota},
		sentence: fmt.Sprintf(
			"Since %s, namespace %s has had %d objects of %s, and the last disturbance was over at %s. At %s the status of %s %s.",
			clock(steady.from), quota.Namespace, steady.number, count, clock(t.facts.lastDisturbance()), clock(due), titled(quota), says),
	})
}
