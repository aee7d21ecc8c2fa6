package gates

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
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
		d.Reasons = slices.Concat(words(registry.Validate()...), d.oldNeeds(at), d.peers(), d.headers(), d.other(at, effective.EmulationVersion(), r.Plugins), apisRefused(apis, r.APIs, d.Value("enable-priority-and-fairness")))
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

// The format is known to kube-apiserver, and nothing is logged here.
var _ = logsapi.RegisterLogFormat("json", nil, logsapi.LoggingBetaOptions)

// refuses is the refusal of the flags about logs.
func (d Decision) refuses(c *logsapi.LoggingConfiguration) error {
	var known featuregate.FeatureGate // without it, the gates are as by default
	if d.gates.GetAllVersioned()[logsapi.LoggingAlphaOptions] != nil && d.gates.GetAllVersioned()[logsapi.LoggingBetaOptions] != nil {
		known = d.gates
	}
	return logsapi.Validate(c, known, nil).ToAggregate()
}

// peers are the refusals of validateUnknownVersionInteroperabilityProxyFlags and of BuildPeerProxy
// (pkg/controlplane/apiserver).
func (d Decision) peers() (reasons []string) {
	if d.Gate(Proxy) {
		// Only a whole command line has the servers of etcd.
		if d.Value(PeerCAFile) != "" && d.values.Changed("etcd-servers") {
			for _, file := range []string{"cert", "key"} {
				if d.Value("proxy-client-"+file+"-file") == "" {
					return []string{fmt.Sprintf("error building peer proxy handler, proxy-%s-file not specified", file)}
				}
			}
		}
		return nil
	}
	for _, name := range []string{PeerCAFile, "peer-advertise-ip", "peer-advertise-port"} {
		if d.Value(name) != "" {
			reasons = append(reasons, fmt.Sprintf("--%s requires %s feature to be turned on", name, Proxy))
		}
	}
	return reasons
}

// oldNeeds are the refusals of gates without their dependencies in versions whose gates name none
// (pkg/controlplane/apiserver/options/validation.go, pkg/kubeapiserver/options/authentication.go).
func (d Decision) oldNeeds(at *version.Version) (reasons []string) {
	for _, old := range []struct {
		gate, needs, words string
		until              uint
	}{
		{Proxy, "StorageVersionAPI", "%s feature requires %s feature flag to be enabled", 32},
		{"AuthorizeNodeWithSelectors", "AuthorizeWithSelectors", "%s feature requires %s feature to be enabled", 34},
		{"PodCertificateRequest", "AuthorizeNodeWithSelectors", "%s feature requires %s feature to be enabled", 34},
		{"ServiceAccountTokenNodeBinding", "ServiceAccountTokenNodeBindingValidation",
			"the %q feature gate can only be enabled if the %q feature gate is also enabled", 34},
	} {
		if at.Minor() <= old.until && d.Gate(old.gate) && !d.Gate(old.needs) {
			reasons = append(reasons, fmt.Sprintf(old.words, old.gate, old.needs))
		}
	}
	return reasons
}

// headers are the refusals of RequestHeaderAuthenticationOptions.Validate (k8s.io/apiserver).
func (d Decision) headers() (reasons []string) {
	d.values.Visit(func(f *pflag.Flag) {
		names, err := d.values.GetStringSlice(f.Name)
		has := func(is func(string) bool) bool { return slices.ContainsFunc(names, is) }
		switch uid := f.Name == UIDHeaders; {
		case err != nil || len(names) == 0 || !strings.HasPrefix(f.Name, "requestheader-"):
		case uid && !d.Gate(UIDGate):
			reasons = append(reasons, fmt.Sprintf("--%s requires the %q feature to be enabled", UIDHeaders, UIDGate))
		case has(func(n string) bool { return strings.TrimSpace(n) == "" }):
			reasons = append(reasons, fmt.Sprintf("empty value in %q", f.Name))
		case uid && !has(func(n string) bool { return strings.EqualFold(n, "X-Remote-Uid") }):
			reasons = append(reasons, "--"+UIDHeaders+" is set without specifying the standard X-Remote-Uid header - API aggregation will not work")
		}
	})
	return reasons
}

// other are the refusals of admission plugins that the version does not have
// (AdmissionOptions.Validate in k8s.io/apiserver), of flags of emulation without it
// (ServerRunOptions.Validate), of metrics of another version (k8s.io/component-base/metrics), and
// of a reconciler that does not exist (pkg/controlplane/instance.go).
func (d Decision) other(binary, emulated *version.Version, plugins []string) (reasons []string) {
	for _, flag := range []string{"enable-admission-plugins", "disable-admission-plugins"} {
		names, _ := d.values.GetStringSlice(flag) // none, if its type is not recorded
		for _, name := range names {
			if len(plugins) > 0 && !slices.Contains(plugins, name) {
				reasons = append(reasons, fmt.Sprintf("%s plugin %q is unknown", flag, name))
			}
		}
	}
	for _, f := range [][2]string{{"emulation", "Emulation"}, {"runtime-config-emulation", "RuntimeConfigEmulation"}} {
		if d.Value(f[0]+"-forward-compatible") == "true" && binary.WithPatch(0).EqualTo(emulated) {
			reasons = append(reasons, fmt.Sprintf("ServerRunOptions.%sForwardCompatible cannot be set to true if the emulation version is the same as the binary version", f[1]))
		}
	}
	shown, previous := d.Value("show-hidden-metrics-for-version"), fmt.Sprintf("%d.%d", binary.Major(), binary.Minor()-1)
	if shown != "" && shown != previous {
		reasons = append(reasons, fmt.Sprintf("metrics.showHiddenMetricsForVersion: Invalid value: %q: must be omitted or have the value '%s'; "+
			"only the previous minor version is allowed", shown, previous))
	}
	reconciler := d.Value("endpoint-reconciler-type")
	if !slices.Contains([]string{"", "lease", "master-count", "none"}, reconciler) && !variable.MatchString(reconciler) {
		reasons = append(reasons, "Reconciler not implemented: "+reconciler)
	}
	return reasons
}

// apisRefused are the refusals of APIEnablementOptions.Validate (k8s.io/apiserver), and those of
// MergeAPIResourceConfigs about keys and values.
func apisRefused(apis cliflag.ConfigurationMap, known []string, fairness string) (reasons []string) {
	for key, value := range apis { // Complete (pkg/controlplane/apiserver/options)
		switch first, second, _ := strings.Cut(key, "/"); {
		case first == "v1", first == "api" && strings.HasPrefix(second+"/", "v1/"):
			delete(apis, key)
			apis["/v1"] = value
		case key == "api/legacy":
			delete(apis, key)
		}
	}
	for _, key := range []string{"flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"} { // validateAPIPriorityAndFairness
		if value := apis[key]; value == "false" && fairness == "true" {
			reasons = append(reasons, fmt.Sprintf("--runtime-config=%s=false conflicts with --enable-priority-and-fairness=true", key))
		} else if value != "true" {
			continue
		}
		break
	}
	if apis["api/all"] == "false" && len(apis) == 1 {
		return append(reasons, "invalid runtime-config with only api/all=false")
	}
	unknown := sets.New[string]()
	for _, key := range slices.Sorted(maps.Keys(apis)) {
		value, words := apis[key], strings.Split(key, "/")
		_, err := strconv.ParseBool(cmp.Or(value, "true"))
		switch {
		case slices.Contains([]string{"api/all", "api/ga", "api/beta", "api/alpha"}, key):
			if value != "true" && value != "false" {
				reasons = append(reasons, fmt.Sprintf("invalid value %s=%s", key, value))
			}
		case len(words) != 2 && len(words) != 3:
			return append(reasons, "runtime-config invalid key "+key)
		case len(known) > 0 && !slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, words[0]+"/") }):
			unknown.Insert(words[0] + "/" + words[1])
		case len(known) > 0 && !slices.Contains(known, words[0]+"/"+words[1]):
			reasons = append(reasons, fmt.Sprintf("group version %s that has not been registered", strings.TrimPrefix(words[0]+"/"+words[1], "/")))
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("invalid value of %s: %s, err: %v", key, value, err))
		case len(words) == 3 && strings.ToLower(words[2]) != words[2]:
			reasons = append(reasons, fmt.Sprintf("invalid key %s: group/version/resource and resource is always lowercase plural, not %q", key, words[2]))
		}
	}
	if unknown.Len() > 0 {
		reasons = append(reasons, "unknown api groups "+strings.Join(sets.List(unknown), ","))
	}
	return reasons
}
