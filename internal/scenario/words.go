package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
)

// forms are the actions that [ParseStep] reads, with the words that follow each. In addition, every
// kind of fault is an action.
var forms = map[Action]string{
	Start: "SERVER [VERSION]", Stop: "SERVER", Kill: "SERVER", Pause: "SERVER", Resume: "SERVER",
	Restart: "SERVER [VERSION]", Replace: "SERVER VERSION", Inject: "KIND FROM TO [PARAMETER=VALUE …]", Heal: "[LABEL]",
	BreakDiscovery: "SERVER PATH [breaks-off | cut-short]", RestoreDiscovery: "SERVER PATH",
	CompactEtcd: "", DefragmentEtcd: "", DeleteLease: "SERVER",
	WithdrawDiscovery: "", GrantDiscovery: "",
}

// ParseStep parses a step as users write it:
//
//	restart b          likewise stop, kill, pause and resume
//	restart b v1.37.1  the same as: replace b v1.37.1
//	start b [v1.37.1]
//	cut b a            any kind of fault, with its parameters: see [fault.Parse]
//	inject cut b a     the same
//	heal cut b a       the label of a fault is the words with which it was injected
//	heal               everything: the Label is then empty
//	compact-etcd       likewise defragment-etcd
//	delete-lease b     the identity lease of b
//	withdraw-discovery from all but the users of the load; likewise grant-discovery, to servers
//	break-discovery a /apis [cut-short], restore-discovery a /apis
//
// The result is valid ([Step.Validate]). A [State] says whether it can be carried out.
func ParseStep(words []string) (Step, error) {
	if len(words) == 0 {
		return Step{}, fmt.Errorf("no action given: write one of %s", strings.Join(actions(), ", "))
	}
	action, rest := Action(words[0]), words[1:]
	if slices.Contains(fault.Kinds(), fault.Kind(action)) {
		action, rest = Inject, words
	}
	form, ok := forms[action]
	if !ok {
		return Step{}, fmt.Errorf("unknown action %q%s", action, fault.Suggest(string(action), actions()))
	}
	step := Step{Action: action}
	switch least, most := arity(form); {
	case action == Heal:
		step.Label = strings.Join(rest, " ")
	case action == Inject:
		f, err := fault.Parse(rest)
		if err != nil {
			return Step{}, err
		}
		step.Fault, step.Label = &f, strings.Join(rest, " ")
	case len(rest) < least || len(rest) > most:
		return Step{}, fmt.Errorf("%q: write %s %s", strings.Join(words, " "), action, form)
	case action == BreakDiscovery || action == RestoreDiscovery:
		step.Server, step.Path = rest[0], rest[1]
		if len(rest) > 2 {
			step.Failure = fault.DiscoveryFailure(rest[2])
		}
	case most == 0:
	default:
		step.Server = rest[0]
		if len(rest) > 1 {
			step.Version = rest[1]
		}
		if action == Restart && step.Version != "" {
			step.Action = Replace
		}
	}
	return step, step.Validate()
}

// arity returns the minimum and maximum number of words of a form. The words in brackets count as
// one.
func arity(form string) (least, most int) {
	required, _, optional := strings.Cut(form, "[")
	least = len(strings.Fields(required))
	if optional {
		return least, least + 1
	}
	return least, least
}

// actions returns the words with which a step can begin.
func actions() []string {
	var all []string
	for action := range forms {
		all = append(all, string(action))
	}
	for _, kind := range fault.Kinds() {
		all = append(all, string(kind))
	}
	slices.Sort(all)
	return all
}
