package run

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
)

// The defaults of a [Spec]: the newest two minors with the feature on by default, and as many
// kube-apiservers as a control plane usually has.
const (
	DefaultFrom    = "v1.36.3"
	DefaultTo      = "v1.37.1"
	DefaultServers = 3
	DefaultSeed    = 1
	// DefaultQPS is the load on servers of the run's own, and GentleQPS on servers that have other
	// work to do.
	DefaultQPS = 240
	GentleQPS  = 60
)

// Spec says which run is wanted. It is data: it is what the flags of 'skewproof run' say, and what
// a suite hands to the process that carries out one of its runs. The zero value of a field stands
// for the default; [Spec.Plan] fills it in.
type Spec struct {
	// Scenario is the name of a scenario of the catalogue; empty if Own is set.
	Scenario string `json:"scenario,omitempty"`
	// Own is a plan that is not in the catalogue.
	Own *Own `json:"own,omitempty"`
	// Backend is what the servers run on. Default: local.
	Backend string `json:"backend,omitempty"`
	// Subject is whose Mixed Version Proxy is tested. Default: builtin, the kube-apiserver's own.
	Subject string `json:"subject,omitempty"`
	// From and To are the older and the newer version of kube-apiserver. They may be the same.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Etcd is the version of etcd.
	Etcd string `json:"etcd,omitempty"`
	// Servers is the number of kube-apiservers. Default: [DefaultServers], or more where the
	// scenario needs more.
	Servers int `json:"servers,omitempty"`
	// QPS is how many requests a second are sent, over all servers.
	QPS float64 `json:"qps,omitempty"`
	// Soak is how much longer the load runs than the scenario says: before the end, while nothing is
	// disturbed. Zero: no longer.
	Soak time.Duration `json:"soak,omitempty"`
	// Seed decides the load's choices, and in the simulator all that is left to chance. Zero is a
	// seed; nil is [DefaultSeed].
	Seed *uint64 `json:"seed,omitempty"`
	// Strict lets invariants beyond the KEP count as well.
	Strict bool `json:"strict,omitempty"`
	// Known, if not empty, lets the run pass if findings explain everything that failed: those of
	// docs/findings.md, and if it is not [KnownOnly], those in the file of that name.
	Known string `json:"known,omitempty"`
	// Label is what reports call what is tested, such as the name of a patch: one line.
	Label string `json:"label,omitempty"`
	// OnlyReads leaves out of the plan what changes, configures or harms the servers.
	OnlyReads bool `json:"onlyReads,omitempty"`
	// Keep holds the cluster after the verdict, until the run is interrupted.
	Keep bool `json:"keep,omitempty"`
	// NoLoad sends no load. At, counted from 1, is the step after which the cluster is held as it
	// is then; 0: before the first step, nil: after the plan. Both are for a cluster that is kept,
	// and such a run is not judged.
	NoLoad bool `json:"noLoad,omitempty"`
	At     *int `json:"at,omitempty"`
	// Binaries are the user's own, instead of released ones.
	Binaries binaries.Overrides `json:"binaries,omitempty"`
	// Kubeconfig, Contexts and DirectContexts name the servers of the backend existing: see
	// [existing.Ways].
	Kubeconfig     string   `json:"kubeconfig,omitempty"`
	Contexts       []string `json:"contexts,omitempty"`
	DirectContexts []string `json:"directContexts,omitempty"`
	// Out is the directory of the run. Default: one below _out, named after scenario, subject and
	// time.
	Out string `json:"out,omitempty"`
}

// Own is a plan that is not in the catalogue, with what a report says of it. The Spec's subject,
// versions, number of servers and seed must be those of the plan.
type Own struct {
	Name    string        `json:"name"`
	Happens string        `json:"happens"` // a sentence for people
	About   []string      `json:"about"`   // invariants
	Plan    scenario.Plan `json:"plan"`
	// Command is the command that makes this plan, such as "replay FILE". Flags for the backend,
	// etcd, the rate and binaries are added to it.
	Command []string `json:"command"`
}

// ReadSpec reads a Spec from JSON. A field that it does not know is an error.
func ReadSpec(r io.Reader) (Spec, error) {
	var s Spec
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("read the specification of a run: %w", err)
	}
	return s, nil
}

// flag is a field of a Spec that is set, as the command line has it. The value of a switch is
// empty.
type flag struct{ name, value string }

// flags returns the fields that are set, in the order in which a command line shows them.
func (s Spec) flags() []flag {
	var all []flag
	add := func(name, value string) {
		if value != "" {
			all = append(all, flag{name, value})
		}
	}
	add("backend", s.Backend)
	add("subject", s.Subject)
	add("from", s.From)
	add("to", s.To)
	add("etcd", s.Etcd)
	if s.Servers != 0 {
		add("servers", strconv.Itoa(s.Servers))
	}
	add("kubeconfig", s.Kubeconfig)
	add("contexts", list(s.Contexts))
	add("direct-contexts", list(s.DirectContexts))
	if s.QPS != 0 {
		add("qps", strconv.FormatFloat(s.QPS, 'g', -1, 64))
	}
	if s.Soak != 0 {
		add("soak", s.Soak.String())
	}
	if s.Seed != nil {
		add("seed", strconv.FormatUint(*s.Seed, 10))
	}
	for _, ref := range slices.SortedFunc(refs(s.Binaries), compareRefs) {
		add("binary", named(ref)+"="+s.Binaries[ref])
	}
	add("label", s.Label)
	switch s.Known {
	case "":
	case KnownOnly:
		all = append(all, flag{name: "known"})
	default:
		all = append(all, flag{name: "known=" + s.Known})
	}
	for _, on := range []struct {
		name string
		is   bool
	}{{"only-reads", s.OnlyReads}, {"strict", s.Strict}, {"keep", s.Keep}, {"no-load", s.NoLoad}} {
		if on.is {
			all = append(all, flag{name: on.name})
		}
	}
	if s.At != nil {
		add("at", strconv.Itoa(*s.At))
	}
	return all
}

// list is a list as a flag takes it.
func list(words []string) string {
	if len(words) == 0 {
		return ""
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(words) // to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Words are those after 'skewproof' of the command line that repeats the run: every field that is
// set, except where its output goes and how its cluster is kept.
func (s Spec) Words() []string {
	words := []string{"run", s.Scenario}
	if s.Own != nil {
		words = slices.Clone(s.Own.Command)
	}
	for _, f := range s.flags() {
		if slices.Contains([]string{"keep", "no-load", "at"}, f.name) || s.Own != nil && !slices.Contains(s.ownFlags(), f.name) {
			continue
		}
		words = append(words, "--"+f.name)
		if f.value != "" {
			words = append(words, f.value)
		}
	}
	return words
}

// ownFlags are the flags that a command with a plan of its own has, if they are set.
func (s Spec) ownFlags() []string {
	if s.NoLoad { // Kubernetes' own tests are the load, and run on one backend
		return []string{"etcd", "binary", "label"}
	}
	return []string{"backend", "etcd", "qps", "binary", "label"}
}

// Command is the command line that repeats the run, for a shell.
func (s Spec) Command() string { return shell.Line(append([]string{"skewproof"}, s.Words()...)...) }

// meaningless lists, by backend, the flags that mean nothing there, and why.
var meaningless = map[string]struct {
	flags []string
	why   string
}{
	scenario.BackendKind: {[]string{"binary", "etcd"}, ": the node image has the programs"},
	scenario.BackendSim:  {[]string{"keep", "no-load", "at", "binary", "etcd"}, ", which starts no program"},
	scenario.BackendExisting: {
		[]string{"subject", "from", "to", "servers", "etcd", "binary", "keep", "no-load", "at", "dry-run"}, ": the servers are what they are, and somebody else's",
	},
}

// Refuses says why a flag means nothing on the backend of the Spec; nil if it means something.
func (s Spec) Refuses(name string) error {
	backend := cmp.Or(s.Backend, scenario.BackendLocal)
	if m := meaningless[backend]; slices.Contains(m.flags, name) {
		return Usagef("--%s means nothing with --backend %s%s", name, backend, m.why)
	}
	if backend != scenario.BackendExisting && slices.Contains([]string{"kubeconfig", "contexts", "direct-contexts"}, name) {
		return Usagef("--%s is for --backend %s; give that too", name, scenario.BackendExisting)
	}
	return nil
}

// Kind tells errors apart by who has to do something about them.
type Kind int

// The kinds of errors. What is no [Error] is [KindNotRun].
const (
	KindUsage  Kind = iota + 1 // the Spec is wrong: nothing was started
	KindNotRun                 // the run could not be carried out
)

// Error is an error with its kind.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its kind.
func (e *Error) Unwrap() error { return e.Err }

// Usagef makes an error of the kind [KindUsage].
func Usagef(format string, args ...any) error { return &Error{KindUsage, fmt.Errorf(format, args...)} }

// KindOf returns the kind of an error, which is not nil.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindNotRun
}

// wrong makes an error wrong usage, unless it has a kind already. It is nil for nil.
func wrong(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{KindUsage, err}
}
