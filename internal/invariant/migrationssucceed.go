package invariant

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// migrationsSucceed judges every StorageVersionMigration of a resource of which etcd has objects.
var migrationsSucceed = Invariant{
	Name:  "MigrationsSucceed",
	Grade: GradeCore,
	Sentence: "A storage version migration succeeds within a bounded time after its request and the last disturbance, whichever " +
		"server the controller is a client of.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it, and discovery is complete on every server: the " +
		"controller reads discovery, lists the objects and applies each again; KEP-4192 (storage version migration). The bound is that of " +
		"OrphansCollected",
	judge: judgeMigrationsSucceed,
}

func judgeMigrationsSucceed(f *Facts) *tally {
	t := newTimedTally(f)
	early, by := 0, controllerNamed(migrator)
	for _, o := range f.objects.all {
		asked := o.first()
		if asked.Migrates == nil || !f.exists(*asked.Migrates) {
			continue
		}
		due := f.due(asked.At)
		state, exists := o.before(due)
		succeeded, failed := slices.Contains(state.Conditions, "Succeeded"), slices.Contains(state.Conditions, "Failed")
		switch {
		case succeeded:
			t.rule(nil, rulingRight)
		case f.finish < due && !failed:
			early++
			t.rule(nil, rulingOut)
		case !exists || state.Deleting:
			t.rule(nil, rulingNone)
		default:
			t.rule(nil, rulingWrong)
			tried := window{asked.At, due}
			what, misled := "it has neither succeeded nor failed by "+clock(due), f.denied(by, *asked.Migrates, "", tried)
			if failed {
				what = "it has failed"
			} else { // the controller gives up for a 404, and not for a document without the resource
				misled = lastOf(misled, f.undescribed(by, *asked.Migrates, tried))
			}
			t.harmed(harm{
				wrong: "a migration did not succeed", cause: fmt.Sprintf("the migration of %s did not succeed", withoutVersion(*asked.Migrates)),
				at: due, object: state,
				misled: misled, graph: []history.Object{state},
				sentence: fmt.Sprintf("%s, which migrates %s, was asked for at %s (revision %d of etcd), and the last disturbance was over at %s: %s.",
					titled(state), withoutVersion(*asked.Migrates), clock(asked.At), asked.Revision, clock(f.lastDisturbance()), what),
			})
		}
	}
	t.fact("migrations for which the run ended too early", early)
	t.doubtLate(early)
	return t
}

// exists reports whether etcd ever had an object of a resource, in any version.
func (f *Facts) exists(of history.GVR) bool {
	return slices.ContainsFunc(f.objects.all, func(o *object) bool { return f.isOf(of, o.first()) })
}

// withoutVersion is a resource as people write it: "widgets.apps".
func withoutVersion(r history.GVR) string {
	return history.Count{Group: r.Group, Resource: r.Resource}.String()
}
