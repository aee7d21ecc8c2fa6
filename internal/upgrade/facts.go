package upgrade

import (
	_ "embed"
	"fmt"
	"sync"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
)

//go:embed facts.yaml
var factsFile []byte

// facts are what was read in the source and in the release notes of Kubernetes.
var facts = sync.OnceValue(func() (f struct {
	Users   map[string][]reports.PlanUser `json:"users"`
	Demands []reports.PlanDemand          `json:"demands"`
}) {
	if err := yaml.UnmarshalStrict(factsFile, &f); err != nil {
		panic(fmt.Sprintf("facts.yaml: %v", err)) // every test of a plan reads it
	}
	return f
})

// kubelet is the user that is a node.
const kubelet = "kubelet"

func usersOf(r history.GVR) []reports.PlanUser {
	return facts().Users[schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()]
}

// demands returns the demands of all minor versions after from, up to to.
func demands(from, to string) (all []reports.PlanDemand) {
	for _, d := range facts().Demands {
		if semver.Compare(semver.MajorMinor(from), d.Minor) < 0 && semver.Compare(d.Minor, semver.MajorMinor(to)) <= 0 {
			all = append(all, d)
		}
	}
	return all
}
