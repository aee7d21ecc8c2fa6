package upgrade

import (
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/reports"
)

// allDemands are what release notes demand before an upgrade to a minor version, as far as the
// upgrade of kube-apiservers is concerned. Each one was read in the CHANGELOG of that version.
var allDemands = []reports.PlanDemand{
	{Minor: "v1.32", Text: "Delete all objects of `coordination.k8s.io/v1alpha1`.",
		Objects: []string{"leasecandidates.v1alpha1.coordination.k8s.io"}, Source: changelog("1.32", "127857")},
	{Minor: "v1.34", Text: "Delete all objects of `resource.k8s.io` that may have been stored by a version before v1.32.",
		Objects: []string{"resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices"}, Source: changelog("1.34", "132000")},
	{Minor: "v1.35", Text: "Delete all objects of `storagemigration.k8s.io/v1alpha1`.",
		Objects: []string{"storageversionmigrations.v1alpha1.storagemigration.k8s.io"}, Source: changelog("1.35", "134784")},
	{Minor: "v1.35", Text: "Delete ResourceSlices that use Partitionable Devices, an alpha feature.",
		Objects: []string{"resourceslices"}, Source: changelog("1.35", "134189")},
	{Minor: "v1.35", Text: "Give roles for `pods/exec`, `pods/attach` and `pods/portforward` the verb `create`.", Source: changelog("1.35", "134577")},
	{Minor: "v1.37", Text: "Delete all objects of `scheduling.k8s.io/v1alpha2`.",
		Objects: []string{"workloads.v1alpha2.scheduling.k8s.io", "podgroups.v1alpha2.scheduling.k8s.io"}, Source: changelog("1.37", "138572")},
	{Minor: "v1.37", Text: "With SELinux on nodes: find the workloads that `SELinuxMount` breaks, which is on from v1.37 on.", Source: changelog("1.37", "139956")},
	{Minor: "v1.37", Text: "Update clients that set `pkixPublicKey` or `proofOfPossession` of PodCertificateRequests.", Source: changelog("1.37", "139579")},
}

func changelog(minor, pull string) string {
	return "k8s.io/kubernetes CHANGELOG-" + minor + ".md, #" + pull
}

// demands returns the demands of all minor versions after from, up to to.
func demands(from, to string) (all []reports.PlanDemand) {
	for _, d := range allDemands {
		if semver.Compare(semver.MajorMinor(from), d.Minor) < 0 && semver.Compare(d.Minor, semver.MajorMinor(to)) <= 0 {
			all = append(all, d)
		}
	}
	return all
}
