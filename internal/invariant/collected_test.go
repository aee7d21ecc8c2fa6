package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// kindly is a story in which only a serves the kind Gadget, and all servers serve ConfigMap.
func kindly(about string) *story {
	everywhere := history.Resource{GVR: configMaps, Kind: "ConfigMap", Verbs: readers}
	newer := doc("newer-kinds", line(widgets), everywhere, history.Resource{GVR: gadgets, Kind: "Gadget", Verbs: readers})
	older := doc("older-kinds", line(widgets), everywhere)
	return blank(about).start("a", 0, newer).start("b", 0, older).start("c", 0, older)
}

// If no controllers run when an object has to be gone, what they have not done is not judged.
func TestIdleControllersAreNotJudged(t *testing.T) {
	passes := want{outcome: OutcomePass, checked: 1}
	idle := want{outcome: OutcomeInconclusive, reason: "no controllers ran when 1 object had to be gone"}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1}
	for name, last := range map[string]string{"OrphansCollected": "x", "DeletionEnds": "o"} { // last has to be gone
		born := func() *story { // due at 90 s
			s := tell(name).idle().put(10, gadget("o")).put(11, configMap("x", gadget("o")))
			if name == "OrphansCollected" {
				return s.remove(30, "o")
			}
			return s.mark(30, "o", "foregroundDeletion")
		}
		checkStories(t, name, []storyCase{
			{"there are none", born(), idle},
			{"they ended long before", born().collects(0, 30), idle},
			{"they begin after it was due", born().collects(91, 200), idle},
			{"they are at work", born().collects(0, 60), fails},
			{"they begin shortly before it is due", born().collects(89, 200), fails},
			{"others are at work", born().request(80, "a", "system:serviceaccount:kube-system:replicaset-controller", "watch", configMaps, "", "", 200), idle},
			{"done, and they ended", born().remove(40, last), passes},
		})
	}
}

// If no server serves a kind, no controller can find its objects.
func TestKindsThatNoServerServesAreNotJudged(t *testing.T) {
	passes := want{outcome: OutcomePass, checked: 1}
	hidden := want{outcome: OutcomeInconclusive, reason: "not exercised", fact: "of kinds that no server served: 1"}
	fails := want{outcome: OutcomeFail, checked: 1, violations: 1}
	newer := doc("newer-kinds", line(widgets), history.Resource{GVR: configMaps, Kind: "ConfigMap", Verbs: readers}, history.Resource{GVR: gadgets, Kind: "Gadget", Verbs: readers})
	for name, last := range map[string]string{"OrphansCollected": "x", "DeletionEnds": "o"} { // last has to be gone
		born := func() *story { // due at 90 s
			s := kindly(name).collects(0, 200).put(10, gadget("o")).put(11, configMap("x", gadget("o")))
			if name == "OrphansCollected" {
				return s.remove(30, "o")
			}
			return s.mark(30, "o", "foregroundDeletion")
		}
		checkStories(t, name, []storyCase{
			{"a server serves it all the time", born(), fails},
			{"the only one stops when all is done", born().remove(40, last).stop("a", 50), passes},
			{"the only one stops", born().stop("a", 40), hidden},
			{"the only one stops after it was due", born().stop("a", 95), fails},
			{"another one serves it too", born().stop("c", 18).start("c", 20, newer).stop("a", 40), fails},
		})
	}
	doomed := func() *story {
		return kindly("NothingLeftBehind").put(10, namespace("n")).put(11, within("n", gadget("x"))).mark(20, "n")
	}
	left := func() *story { return doomed().remove(30, "n") }
	checkStories(t, "NothingLeftBehind", []storyCase{
		{"a server serves what is left", left(), fails},
		{"nothing is left", doomed().remove(29, "x").remove(30, "n"), passes},
		{"the only one had stopped", left().stop("a", 15), hidden},
		{"the only one had been killed", left().kill("a", 15), fails},
		{"the only one stops while the namespace goes", left().stop("a", 25), fails},
		{"the only one starts while the namespace goes", left().stop("a", 15).start("a", 24, newer), fails},
	})
}
