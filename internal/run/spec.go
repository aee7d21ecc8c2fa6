package run

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
)

// These are the defaults of a [Spec]: the newest two minor versions with the feature on by default,
// and the usual number of kube-apiservers of a control plane.
const (
	DefaultFrom    = "v1.36.3"
	DefaultTo      = "v1.37.1"
	DefaultServers = 3
	DefaultSeed    = 1
	// DefaultQPS is the load on servers that the run starts. GentleQPS is the load on servers that
	// have other work to do.
	DefaultQPS = 240
	GentleQPS  = 60
)

// Spec says which run is wanted. It is data: the flags of 'skewproof run' fill it in, and a suite
// passes it to the process that carries out one of its runs. The zero value of a field means the
// default. [Spec.Plan] fills in the defaults.
type Spec struct {
	// Scenario is the name of a scenario of the catalogue. It is empty if Own is set.
	Scenario string `json:"scenario,omitempty"`
	// Own is a plan that is not in the catalogue.
	Own *Own `json:"own,omitempty"`
	// Backend says what the servers run on. Default: local.
	Backend string `json:"backend,omitempty"`
	// Subject says whose Mixed Version Proxy is tested. Default: builtin, the kube-apiserver's own.
	Subject string `json:"subject,omitempty"`
	// From and To are the older and the newer version of kube-apiserver. They may be the same.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// APIServerFlags are the user's own flags for every kube-apiserver, as NAME=VALUE, and
	// RuntimeConfig is their --runtime-config; see [history.OwnFlags].
	APIServerFlags []string `json:"apiserverFlags,omitempty"`
	RuntimeConfig  *string  `json:"runtimeConfig,omitempty"`
	// Etcd is the version of etcd.
	Etcd string `json:"etcd,omitempty"`
	// Servers is the number of kube-apiservers. Default: [DefaultServers], or more if the scenario
	// needs more.
	Servers int `json:"servers,omitempty"`
	// QPS is the number of requests a second, over all servers.
	QPS float64 `json:"qps,omitempty"`
	// Soak is the time by which the load runs longer than in the scenario. This time is before the
	// end, when nothing disturbs the cluster. Zero adds no time.
	Soak time.Duration `json:"soak,omitempty"`
	// Seed decides the load's choices, and all random choices in the simulator. Zero is a valid
	// seed. nil means [DefaultSeed].
	Seed *uint64 `json:"seed,omitempty"`
	// Strict makes invariants beyond the KEP count as well.
	Strict bool `json:"strict,omitempty"`
	// Known, if not empty, lets the run pass if findings explain all failures. These are the
	// findings of docs/findings.md. If Known is not [KnownOnly], it also names a file with more
	// findings.
	Known string `json:"known,omitempty"`
	// Label is the name of the tested programs in reports, such as the name of a patch. It is one
	// line.
	Label string `json:"label,omitempty"`
	// OnlyReads removes from the plan every step that changes, configures or harms the servers.
	OnlyReads bool `json:"onlyReads,omitempty"`
	// Keep holds the cluster after the verdict, until the run is interrupted.
	Keep bool `json:"keep,omitempty"`
	// NoLoad sends no load. At, counted from 1, is the step after which the cluster is held in its
	// present state. 0 means before the first step, nil means after the plan. Both are for a
	// cluster that is kept. Such a run is not judged.
	NoLoad bool `json:"noLoad,omitempty"`
	At     *int `json:"at,omitempty"`
	// Binaries are the user's own binaries, which replace released ones.
	Binaries binaries.Overrides `json:"binaries,omitempty"`
	// Kubeconfig and Contexts name the servers of the backend existing: see [existing.Endpoints].
	Kubeconfig string   `json:"kubeconfig,omitempty"`
	Contexts   []string `json:"contexts,omitempty"`
	// Out is the directory of the run. By default it is below _out and named after scenario,
	// subject and time.
	Out string `json:"out,omitempty"`
}

// Own is a plan that is not in the catalogue, with its description for a report. The Spec's
// subject, versions, number of servers and seed must match the plan.
type Own struct {
	Name    string        `json:"name"`
	Happens string        `json:"happens"` // a sentence for people
	About   []string      `json:"about"`   // invariants
	Plan    scenario.Plan `json:"plan"`
	// Command is the command that makes this plan, such as "replay FILE". Spec.Words adds flags for
	// the backend, etcd, the rate and binaries.
	Command []string `json:"command"`
}

// ReadSpec reads a Spec from JSON. An unknown field is an error.
func ReadSpec(r io.Reader) (Spec, error) {
	var s Spec
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("read the specification of a run: %w", err)
	}
	return s, nil
}

// flag is a set field of a Spec, as written on the command line. A boolean flag has an empty value.
type flag struct{ name, value string }

// flags returns the set fields, in the order in which a command line shows them.
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
	if s.RuntimeConfig != nil {
		all = append(all, flag{"runtime-config=" + *s.RuntimeConfig, ""})
	}
	for _, own := range s.APIServerFlags {
		add(ownFlag, own)
	}
	add("kubeconfig", s.Kubeconfig)
	add("contexts", list(s.Contexts))
	if s.QPS != 0 {
		add("qps", strconv.FormatFloat(s.QPS, 'g', -1, 64))
	}
	if s.Soak != 0 {
		add("soak", s.Soak.String())
	}
	if s.Seed != nil {
		add("seed", strconv.FormatUint(*s.Seed, 10))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.Binaries), func(a, b binaries.Ref) int { return cmp.Compare(a.Name(), b.Name()) }) {
		add("binary", ref.Name()+"="+s.Binaries[ref])
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

// list writes a list as a flag takes it.
func list(words []string) string {
	if len(words) == 0 {
		return ""
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(words) // cannot fail, because it writes to memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Words are the words after 'skewproof' of the command line that repeats the run: every set field,
// except the output directory and how the cluster is kept.
func (s Spec) Words() []string {
	words := []string{"run", s.Scenario}
	if s.Own != nil {
		words = slices.Clone(s.Own.Command)
	}
	for _, f := range s.flags() {
		name, _, _ := strings.Cut(f.name, "=")
		if slices.Contains([]string{"keep", "no-load", "at"}, name) || s.Own != nil && !slices.Contains(s.ownFlags(), name) {
			continue
		}
		words = append(words, "--"+f.name)
		if f.value != "" {
			words = append(words, f.value)
		}
	}
	return words
}

// These are the names of flags that concern the user's own flags.
const (
	ownFlag           = "kube-apiserver-flag"
	runtimeConfigFlag = "runtime-config"
)

// own returns the user's own flags for every kube-apiserver.
func (s Spec) own() history.OwnFlags {
	return history.OwnFlags{RuntimeConfig: s.RuntimeConfig, Flags: s.APIServerFlags}
}

// ownFlags are the flags of a command with a custom plan, if they are set.
func (s Spec) ownFlags() []string {
	if s.NoLoad { // Kubernetes' own tests are the load, and run on only one backend
		return []string{"etcd", "binary", "label"}
	}
	return []string{"backend", "etcd", ownFlag, runtimeConfigFlag, "qps", "binary", "label"}
}

// Command is the command line that repeats the run, for a shell.
func (s Spec) Command() string { return shell.Line(append([]string{"skewproof"}, s.Words()...)...) }

// meaningless lists, by backend, the flags that mean nothing there, and the reason.
var meaningless = map[string]struct {
	flags []string
	why   string
}{
	scenario.BackendKind: {[]string{"binary", "etcd"}, ": the node image has the programs"},
	scenario.BackendSim:  {[]string{"keep", "no-load", "at", "binary", "etcd", ownFlag, runtimeConfigFlag}, ", which starts no program"},
	scenario.BackendExisting: {
		[]string{"from", "to", "servers", "etcd", "binary", "keep", "no-load", "at", "dry-run", ownFlag, runtimeConfigFlag},
		": skewproof did not start these servers, so it cannot change them",
	},
}

// Refuses says why a flag means nothing on the backend of the Spec. It is nil if the flag means
// something.
func (s Spec) Refuses(name string) error {
	backend := cmp.Or(s.Backend, scenario.BackendLocal)
	name, _, _ = strings.Cut(name, "=")
	if m := meaningless[backend]; slices.Contains(m.flags, name) {
		return Usagef("--%s means nothing with --backend %s%s", name, backend, m.why)
	}
	if backend != scenario.BackendExisting && slices.Contains([]string{"kubeconfig", "contexts"}, name) {
		return Usagef("--%s is for --backend %s; give that too", name, scenario.BackendExisting)
	}
	return nil
}

// Kind distinguishes errors by who has to act on them.
type Kind int

// These are the kinds of errors. An error that is not an [Error] is [KindNotRun].
const (
	KindUsage  Kind = iota + 1 // the Spec is wrong, and nothing was started
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

// KindOf returns the kind of an error. The error must not be nil.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindNotRun
}

// wrong makes an error one of the kind [KindUsage], unless it already has a kind. It returns nil
// for nil.
func wrong(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{KindUsage, err}
}
