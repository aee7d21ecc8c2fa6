package upgrade

import (
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/reports"
)

// places are the words for the places of signs.
var places = map[Where]string{
	OfServer: "metric of every kube-apiserver", OfControllers: "metric of kube-controller-manager", OfLog: "log of every kube-apiserver",
	OfCommand: "command",
}

// watched returns what an operator watches.
func watched(t AlarmTable) (all []reports.PlanMetric) {
	for _, a := range t.Alarms {
		all = append(all, reports.PlanMetric{Name: a.Sign, Where: places[a.Where], Since: a.Since, Bad: a.Bad, Means: a.Means, Rises: t.rises(a)})
	}
	return all
}

// stop returns the conditions under which the operator must not continue with the next server, and
// the commands that show some of them. Older servers have to have the signs.
func stop(p reports.UpgradePlan, then reports.PlanProtection, t AlarmTable) (all, commands []string) {
	for _, a := range t.Alarms {
		if a.Stop == "" || a.Protected && !then.Ways[0].Protected || semver.Compare(semver.MajorMinor(p.From), "v"+a.Since) < 0 {
			continue
		}
		all = append(all, strings.Replace(a.Stop, "SIGN", "`"+a.Sign+"`", 1))
		if a.Where == OfCommand {
			commands = append(commands, a.Sign+"     # stop at "+a.Bad)
		}
	}
	return all, commands
}

// back says how to go back.
func back(p reports.UpgradePlan) []string {
	if !differs(p) {
		return []string{"Put the saved manifest of kube-apiserver back, on the last upgraded node first (kubeadm has no downgrade)."}
	}
	fields := ""
	if len(p.FieldHarms) > 0 {
		fields = ", and unset every field that the versions treat differently"
	}
	return []string{
		"The safest way is forward: with one version, no server lacks anything.",
		"Otherwise delete every object that only `" + p.To + "` serves first" + fields + ": older servers cannot delete it." + byThemselves(p, " Put its old manifest back before you delete these: it creates them whenever it starts."),
		"Then put the saved manifest of kube-apiserver back, on the last upgraded node first (kubeadm has no downgrade). After each server, wait " +
			"until its lease is renewed: until then peers believe that it serves more (finding 22).",
		"If `" + p.To + "` has stored objects in a version that `" + p.From + "` cannot read, restore the snapshot of etcd on all members.",
	}
}
