package gates

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

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
