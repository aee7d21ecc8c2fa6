package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// Options say what is tested, and by which scenarios. [Options.Register] gives the defaults.
type Options struct {
	// Program is the skewproof that carries out the runs. Empty: it is built from the sources that this package belongs to.
	Program string
	// Backend, Subject, From, To and Servers are what 'skewproof run' has under these names. Empty (or 0): its defaults.
	Backend, Subject, From, To string
	Servers                    int
	// Kubeconfig, Contexts and DirectContexts are for the backend existing.
	Kubeconfig               string
	Contexts, DirectContexts []string
	// Controls says which scenarios have a control run.
	Controls Controls
	// Parallel is how many runs are carried out at a time; 0 is 1. It is for [Run]: Ginkgo has its own way to spread specs over processes.
	Parallel int
	// Strict lets the profile extended count.
	Strict bool
	// Product is what the report calls what was tested. An empty name: one by subject.
	Product reports.Product
	// Out is the directory of reports and runs. It must not hold any yet.
	Out string
	// Labels choose the scenarios, in Ginkgo's language. They must be those that Ginkgo is given: here they only tell which scenarios
	// need a control run.
	Labels string
	// Version, Reproduce and Environment are for the report: the version of the program that tests, the command line that repeats the run, and
	// on what it runs.
	Version, Reproduce string
	Environment        []string

	// onlyReads leaves out of plans what servers that are somebody else's must not be asked for.
	onlyReads bool
}

// Controls says which of the chosen scenarios are run a second time, on what they must fail on.
type Controls string

// The choices of control runs.
const (
	ControlsEach Controls = "each" // every scenario that has one
	ControlsFew  Controls = "few"  // the quickest scenario for each invariant that some scenario must be able to violate
)

// Register declares the flags that every way of running the suite has.
func (o *Options) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.Backend, "backend", scenario.BackendLocal, "what the servers run on: local, kind, sim, or existing (servers that run already)")
	flags.StringVar(&o.Subject, "subject", "", "whose Mixed Version Proxy is tested, as in 'skewproof run' (default builtin)")
	flags.StringVar(&o.From, "from", "", "the older kube-apiserver version, as in 'skewproof run'")
	flags.StringVar(&o.To, "to", "", "the newer kube-apiserver version, as in 'skewproof run'")
	flags.IntVar(&o.Servers, "servers", 0, "number of kube-apiservers (default: what 'skewproof run' takes, or more where a scenario needs more)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "for --backend existing: the file that names the servers, a context for each")
	flags.StringSliceVar(&o.Contexts, "contexts", nil, "for --backend existing: the contexts to test (default: all)")
	flags.StringSliceVar(&o.DirectContexts, "direct-contexts", nil,
		"for --backend existing: contexts, in the same order, that lead to the kube-apiservers behind the proxy, where it is a process of its own")
	flags.Var(&o.Controls, "controls", "negative control: each scenario once more on what it must fail on (each), or the quickest for each invariant (few)")
	flags.BoolVar(&o.Strict, "strict", false, "let invariants beyond the KEP count as well")
	flags.StringVar(&o.Product.Name, "product", "", "what the report calls the proxy that is tested (default: by subject)")
	flags.StringVar(&o.Product.Version, "product-version", "", "its version")
	flags.StringVar(&o.Product.URL, "product-url", "", "where to read about it")
	flags.StringVar(&o.Out, "out", "", "directory for reports and runs (default _out/conformance-BACKEND-SUBJECT-TIME)")
}

// String, Set and Type make Controls a flag. The zero value is ControlsEach.
func (c *Controls) String() string {
	if *c == "" {
		return string(ControlsEach)
	}
	return string(*c)
}

// Set takes the name of a choice.
func (c *Controls) Set(s string) error {
	if !slices.Contains([]Controls{ControlsEach, ControlsFew}, Controls(s)) {
		return fmt.Errorf("want %s or %s", ControlsEach, ControlsFew)
	}
	*c = Controls(s)
	return nil
}

// Type is what the help shows.
func (*Controls) Type() string { return "each|few" }

// Validate checks what can be checked before anything is built or run.
func (o *Options) Validate() error {
	if _, err := Choose(o.Labels); err != nil {
		return err
	}
	if o.Servers < 0 {
		return fmt.Errorf("%d servers: want a number above 0; a scenario that needs more gets more", o.Servers)
	}
	if o.Backend != scenario.BackendExisting {
		if o.Kubeconfig != "" || len(o.Contexts)+len(o.DirectContexts) > 0 {
			return fmt.Errorf("a kubeconfig and contexts are for the backend %s, not %s", scenario.BackendExisting, o.Backend)
		}
		if p := o.parameters(scenario.Scenario{}); p.From == p.To {
			return fmt.Errorf("from and to are both %s: with one version nothing is skewed, and no control run can fail; give two versions", p.To)
		}
		return nil
	}
	if o.Kubeconfig == "" {
		return fmt.Errorf("--backend %s needs --kubeconfig: the file that names the servers, a context for each", scenario.BackendExisting)
	}
	if o.Parallel > 1 {
		return fmt.Errorf("parallel %d: servers that run already get the requests of one run at a time, and no more than announced; leave it out", o.Parallel)
	}
	if o.Subject+o.From+o.To != "" || o.Servers != 0 {
		return errors.New("subject, versions and number of servers that run already are what they are: leave them out")
	}
	return nil
}

// plainly is what is wrong, out of an error that Ginkgo has laid out for a terminal: the last line of its message.
func plainly(err error) string {
	message := err.Error()
	var laidOut types.GinkgoError
	if errors.As(err, &laidOut) {
		message = laidOut.Message
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	return strings.TrimSuffix(strings.TrimSpace(lines[len(lines)-1]), ".")
}

// Tested is the subject that is tested, by the name that reports show.
func (o *Options) Tested() string {
	if o.Backend == scenario.BackendExisting {
		return External
	}
	return cmp.Or(o.Subject, "builtin")
}

// External is the subject of a proxy that is not ours to switch.
const External = "external"

// Choose returns the scenarios that labels choose, in the order of the catalogue. That is an error if they are none.
func Choose(expression string) ([]scenario.Scenario, error) {
	chooses, err := types.ParseLabelFilter(expression)
	if err != nil {
		return nil, fmt.Errorf("labels %q: %s; write them like 'smoke' or 'network && !slow'", expression, plainly(err))
	}
	chosen := slices.DeleteFunc(scenarios.All(), func(s scenario.Scenario) bool { return !chooses(labels(s)) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("labels %q choose no scenario: 'skewproof list --json' shows the labels of each", expression)
	}
	return chosen, nil
}

// chosen are the scenarios that the labels choose.
func (o *Options) chosen() []scenario.Scenario {
	chosen, _ := Choose(o.Labels) // Validate says so
	return chosen
}

// labels are what a scenario can be chosen by: its own labels, those of its family and its name.
func labels(s scenario.Scenario) []string {
	all := slices.Concat(s.Labels, s.Family.Labels(), []string{s.Name})
	slices.Sort(all)
	return slices.Compact(all)
}

// Words are the arguments of 'skewproof run' for the scenario of that name, or nil if there is none.
func (o *Options) Words(name string) []string {
	s, err := scenarios.Find(name)
	if err != nil {
		return nil
	}
	return o.words(s)
}

// words are the arguments of 'skewproof run' for a scenario.
func (o *Options) words(s scenario.Scenario) []string {
	words := []string{s.Name, "--backend", o.Backend}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("--subject", o.Subject)
	add("--from", o.From)
	add("--to", o.To)
	if n := o.parameters(s).Servers; o.Backend != scenario.BackendExisting && (o.Servers > 0 || n > DefaultServers) {
		add("--servers", strconv.Itoa(n))
	}
	add("--kubeconfig", o.Kubeconfig)
	add("--contexts", strings.Join(o.Contexts, ","))
	add("--direct-contexts", strings.Join(o.DirectContexts, ","))
	if o.onlyReads {
		words = append(words, "--only-reads")
	}
	if o.Strict {
		words = append(words, "--strict")
	}
	return words
}

// parameters are those of a scenario's plan, as 'skewproof run' will have them. A scenario that needs more servers than asked for gets them.
func (o *Options) parameters(s scenario.Scenario) scenario.Parameters {
	return scenario.Parameters{
		Servers: max(cmp.Or(o.Servers, DefaultServers), s.MinServers),
		From:    cmp.Or(o.From, DefaultFrom), To: cmp.Or(o.To, DefaultTo), Bounds: history.DefaultBounds,
		ReadOnly: o.onlyReads || o.Backend == scenario.BackendExisting,
	}
}

// What 'skewproof run' takes unless told otherwise: the newest two minors with the feature on by default, and as many kube-apiservers as a
// control plane usually has.
const (
	DefaultFrom    = "v1.36.3"
	DefaultTo      = "v1.37.1"
	DefaultServers = 3
)
