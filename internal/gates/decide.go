package gates

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/version"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/skewproof/skewproof/sim/recorded"
)

// Proxy is the feature gate of the Mixed Version Proxy, and Identity the one that it needs.
const (
	Proxy    = "UnknownVersionInteroperabilityProxy"
	Identity = "APIServerIdentity"
)

// These are the flags that this package reads.
const (
	featureGates  = "feature-gates"
	emulated      = "emulated-version"
	runtimeConfig = "runtime-config"
	PeerCAFile    = "peer-ca-file"
	// UIDHeaders is the flag that lets peers pass on the UID of a user, and UIDGate its feature gate.
	UIDHeaders = "requestheader-uid-headers"
	UIDGate    = "RemoteRequestHeaderUID"
)

// FromKubeadm is where flags were found that kubeadm gives by itself, and Certificates is the
// directory of its certificates, unless a cluster has another.
const (
	FromKubeadm  = "kubeadm"
	Certificates = "/etc/kubernetes/pki"
)

// Set is a flag as somebody sets it. A flag without a name is a word that belongs to no flag.
type Set struct {
	Name, Value string
	// Bare is true if the flag has no value.
	Bare bool
	// From says where it was found, for people.
	From string
}

// String is the flag on a command line.
func (s Set) String() string {
	switch {
	case s.Name == "":
		return s.Value
	case s.Bare:
		return "--" + s.Name
	}
	return "--" + s.Name + "=" + s.Value
}

// variable matches a variable, of Kubernetes or of a shell.
var variable = regexp.MustCompile(`\$[({]?[A-Za-z_]`)

// Variable reports whether the value has a variable in it.
func (s Set) Variable() bool { return variable.MatchString(s.Value) }

// Decision says whether a kube-apiserver starts with its flags, and what they mean.
type Decision struct {
	Starts bool
	// Reasons say why the server does not start, in its own words.
	Reasons []string
	// Notes say what was not checked.
	Notes []string
	// Emulates is the minor version that the server behaves like, such as "v1.36".
	Emulates string

	gates  featuregate.MutableVersionedFeatureGate
	values *pflag.FlagSet
}

// Gate reports whether a feature gate is on. A gate that the version does not know is off.
func (d Decision) Gate(name string) bool {
	return d.knows(name) && d.gates.Enabled(featuregate.Feature(name))
}

// Off reports whether the version knows a feature gate, which is off.
func (d Decision) Off(name string) bool { return d.knows(name) && !d.Gate(name) }

func (d Decision) knows(name string) (known bool) {
	if d.gates != nil {
		_, known = d.gates.GetAll()[featuregate.Feature(name)]
	}
	return known
}

// Value returns the value of a flag, or its default. It is empty if the version has no such flag.
func (d Decision) Value(name string) string {
	if d.values == nil || d.values.Lookup(name) == nil {
		return ""
	}
	if f := d.values.Lookup(name); f.Changed {
		return f.Value.String()
	}
	return d.values.Lookup(name).DefValue
}

// Flags returns the names of all flags that the server has.
func (d Decision) Flags() (names []string) {
	d.values.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// Decide decides about a kube-apiserver of a version with these flags, in their order.
func Decide(name string, flags []Set, directories ...string) (Decision, error) {
	r, err := Find(name, directories...)
	var d Decision
	switch {
	case err != nil && !errors.Is(err, recorded.ErrNoFlags):
		return d, err
	case err != nil:
		d.Notes = append(d.Notes, fmt.Sprintf("Not checked: whether %s has these flags and feature gates, because they are not recorded. `skewproof plan --record %s` records them.", name, name))
	case r.Version != name:
		d.Notes = append(d.Notes, fmt.Sprintf("The flags and feature gates of %s are not recorded. Those of %s stand in for them.", name, r.Version))
	}
	if r.Source != "" {
		d.Notes = append(d.Notes, fmt.Sprintf("Not checked, since not recorded: flags of %s, locks and dependencies of its gates.", r.Version))
	}
	return d.with(r.completed(name, flags), flags)
}

// Assume decides about a program of somebody's own, which behaves like a version and may have other
// flags and feature gates than its release. It has those that somebody sets.
func Assume(name string, flags []Set) (Decision, error) {
	return Decision{}.with(Recording{}.completed(name, flags), flags)
}

func (d Decision) with(r Recording, flags []Set) (Decision, error) {
	at, err := version.ParseSemantic(r.Version)
	if err != nil {
		return d, fmt.Errorf("decide about %q: %w", r.Version, err)
	}
	if d.gates, err = r.featureGate(); err != nil {
		return d, err
	}
	floor := version.MajorMinor(1, min(31, at.Minor()-1)) // as in k8s.io/apiserver/pkg/util/compatibility
	if lowest := at.WithPatch(0).SubtractMinor(3); lowest.AtLeast(floor) {
		floor = lowest
	}
	registry := compatibility.NewComponentGlobalsRegistry()
	effective := compatibility.NewEffectiveVersion(at, false, floor, floor)
	if err := registry.Register(compatibility.DefaultKubeComponent, effective, d.gates); err != nil {
		return d, fmt.Errorf("decide about %s: %w", r.Version, err)
	}
	d.values = pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	d.values.SetOutput(io.Discard)
	d.values.SetNormalizeFunc(cliflag.WordSepNormalizeFunc) // the real one takes underscores, too
	// Before v1.31 there is no emulation, and --feature-gates takes gates of one component only.
	if _, emulates := r.flag(emulated); emulates {
		registry.AddFlags(d.values)
	} else {
		d.gates.AddFlag(d.values)
	}
	apis := cliflag.ConfigurationMap{}
	d.values.Var(&apis, runtimeConfig, "")
	logging, logs := logsapi.NewLoggingConfiguration(), pflag.NewFlagSet("", pflag.ContinueOnError)
	logsapi.AddFlags(logging, logs)
	for _, f := range r.Flags {
		if of := logs.Lookup(f.Name); of != nil {
			d.values.AddFlag(of)
		} else if d.values.Lookup(f.Name) == nil {
			f.add(d.values)
		}
	}

	unread := func(s Set) bool { // every text is a string
		f, has := r.flag(s.Name)
		return s.Variable() && (s.Name == "" || has && f.Type != "string")
	}
	for _, f := range flags {
		if unread(f) {
			d.Notes = append(d.Notes, fmt.Sprintf("Not checked: `%s`, because the value of the variable is not known.", f))
		}
	}
	flags = slices.DeleteFunc(slices.Clone(flags), unread)
	if d.Reasons = d.unknown(r, flags); len(d.Reasons) > 0 {
		return d, nil
	}
	for _, f := range flags {
		if err := d.values.Parse([]string{f.String()}); err != nil {
			d.Reasons = append(d.Reasons, err.Error())
		}
	}
	if len(d.Reasons) == 0 {
		d.Reasons = words(registry.Set(), d.refuses(logging))
	}
	if len(d.Reasons) == 0 {
		d.Reasons = slices.Concat(words(registry.Validate()...), d.oldNeeds(at), d.peers(), d.headers(),
			d.other(at, effective.EmulationVersion(), r.Plugins), apisRefused(apis, r.APIs, d.Value("enable-priority-and-fairness")))
	}
	d.Starts, d.Emulates = len(d.Reasons) == 0, "v"+effective.EmulationVersion().String()
	return d, nil
}

// unknown finds the flags and the feature gates that the version does not have. The server ends at
// the first one.
func (d Decision) unknown(r Recording, flags []Set) (reasons []string) {
	known := d.gates.GetAllVersioned()
	var arguments []string
	ended := false // only arguments follow
	for _, f := range flags {
		name := string(cliflag.WordSepNormalizeFunc(nil, f.Name))
		_, has := r.flag(name)
		switch {
		case f.Name == "" && (ended || f.Value == "-" || !strings.HasPrefix(f.Value, "-")):
			arguments = append(arguments, f.Value)
		case f.Name == "": // pflag says why it is no flag
			ended = f.Value == "--"
			if err := d.values.Parse([]string{f.Value}); err != nil {
				reasons = append(reasons, err.Error())
			}
		case !has:
			reasons = append(reasons, "unknown flag: --"+f.Name)
		case name == featureGates:
			for _, gate := range slices.Sorted(maps.Keys(Read(f.Value))) {
				if _, ok := known[featuregate.Feature(gate)]; !ok {
					reasons = append(reasons, "unrecognized feature gate: "+gate)
				}
			}
		}
	}
	if len(arguments) > 0 {
		reasons = append(reasons, fmt.Sprintf("%q does not take any arguments, got %q", "kube-apiserver", arguments))
	}
	return reasons
}

// words are the texts of errors, in an order that does not change.
func words(all ...error) (texts []string) {
	for _, err := range all {
		var list utilerrors.Aggregate
		if errors.As(err, &list) {
			texts = append(texts, words(list.Errors()...)...)
		} else if err != nil {
			texts = append(texts, err.Error())
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// types make flags of the types that kube-apiserver has. A flag of another type takes every text.
var types = map[string]func(to *pflag.FlagSet, name, short string){
	"bool":        func(to *pflag.FlagSet, name, short string) { to.BoolP(name, short, false, "") },
	"portRange":   func(to *pflag.FlagSet, name, short string) { to.VarP(&utilnet.PortRange{}, name, short, "") },
	"int":         func(to *pflag.FlagSet, name, short string) { to.IntP(name, short, 0, "") },
	"int64":       func(to *pflag.FlagSet, name, short string) { to.Int64P(name, short, 0, "") },
	"uint":        func(to *pflag.FlagSet, name, short string) { to.UintP(name, short, 0, "") },
	"float32":     func(to *pflag.FlagSet, name, short string) { to.Float32P(name, short, 0, "") },
	"float64":     func(to *pflag.FlagSet, name, short string) { to.Float64P(name, short, 0, "") },
	"duration":    func(to *pflag.FlagSet, name, short string) { to.DurationP(name, short, 0, "") },
	"ip":          func(to *pflag.FlagSet, name, short string) { to.IPP(name, short, nil, "") },
	"string":      func(to *pflag.FlagSet, name, short string) { to.StringP(name, short, "", "") },
	"stringSlice": func(to *pflag.FlagSet, name, short string) { to.StringSliceP(name, short, nil, "") },

	"int32Slice":     func(to *pflag.FlagSet, name, short string) { to.Int32SliceP(name, short, nil, "") },
	"stringToString": func(to *pflag.FlagSet, name, short string) { to.StringToStringP(name, short, nil, "") },
	"mapStringString": func(to *pflag.FlagSet, name, short string) {
		to.VarP(cliflag.NewMapStringStringNoSplit(&map[string]string{}), name, short, "")
	},
	"namedCertKey": func(to *pflag.FlagSet, name, short string) {
		to.VarP(cliflag.NewNamedCertKeyArray(&[]cliflag.NamedCertKey{}), name, short, "")
	},
}

func (f Flag) add(to *pflag.FlagSet) {
	of := types[f.Type]
	if of == nil {
		of = types["string"]
	}
	of(to, f.Name, f.Short)
	made := to.Lookup(f.Name)
	made.NoOptDefVal, made.DefValue = f.NoValue, f.Default
}
