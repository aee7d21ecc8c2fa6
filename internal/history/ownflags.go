package history

import (
	"slices"
	"strings"
	"time"
)

// OwnFlags are the user's own flags for every kube-apiserver of a run, in addition to the run's
// own. The zero value has none.
type OwnFlags struct {
	// RuntimeConfig replaces the run's --runtime-config=api/all=true. nil keeps that flag. Empty
	// means no such flag: every server then has the APIs that are on by default.
	RuntimeConfig *string `json:"runtimeConfig,omitempty"`
	// Flags are further flags, each as NAME=VALUE, without the two hyphens. NAME alone switches
	// something on.
	Flags []string `json:"flags,omitempty"`
}

// FeatureGates is the name of the only flag that both the run and the user may give. Their values
// are joined.
const FeatureGates = "feature-gates"

// kubeComponent is the component of kube-apiserver in the values of --emulated-version:
// DefaultKubeComponent in k8s.io/component-base/compatibility/registry.go.
const kubeComponent = "kube"

// APIs returns the value of --runtime-config, given the value of the run.
func (o OwnFlags) APIs(usual string) string {
	if o.RuntimeConfig != nil {
		return *o.RuntimeConfig
	}
	return usual
}

// all returns the user's own flags, each with its name and value. A flag without a value is
// switched on, which pflag writes as the value "true". kube-apiserver takes underscores for
// hyphens.
func (o OwnFlags) all() (all [][2]string) {
	for _, f := range o.Flags {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			value = "true"
		}
		all = append(all, [2]string{strings.ReplaceAll(name, "_", "-"), value})
	}
	return all
}

// Others returns the user's own flags except --feature-gates, each with its name and value.
func (o OwnFlags) Others() [][2]string {
	return slices.DeleteFunc(o.all(), func(f [2]string) bool { return f[0] == FeatureGates })
}

// Values returns all values of one of the user's own flags, in order.
func (o OwnFlags) Values(name string) (values []string) {
	for _, f := range o.all() {
		if f[0] == name {
			values = append(values, f[1])
		}
	}
	return values
}

// Joined returns all values of one of the user's own flags that is a list.
func (o OwnFlags) Joined(name string) string { return strings.Join(o.Values(name), ",") }

// Emulates returns the minor version, such as "1.36", in the user's own --emulated-version, or "".
func (o OwnFlags) Emulates() string { return EmulatedMinor(o.Values("emulated-version")...) }

// EmulatedMinor returns the minor version, such as "1.36", in the values of --emulated-version,
// which may be written "v1.36" or "kube=1.36"; "" if there is none.
func EmulatedMinor(values ...string) (minor string) {
	for value := range strings.SplitSeq(strings.Join(values, ","), ",") {
		component, version, ok := strings.Cut(value, "=")
		if !ok {
			component, version = kubeComponent, value
		}
		if strings.TrimSpace(component) == kubeComponent {
			minor = strings.TrimPrefix(strings.TrimSpace(version), "v")
		}
	}
	return minor
}

// Drain returns by how much the user's own flags prolong the graceful end of a server. Requests in
// flight, and watches that the server does not end itself, may take as long as --request-timeout.
func (o OwnFlags) Drain() (sum time.Duration) {
	for name, usual := range map[string]time.Duration{
		"shutdown-delay-duration": 0, "shutdown-watch-termination-grace-period": 0, "request-timeout": time.Minute,
	} {
		if values := o.Values(name); len(values) > 0 {
			last, _ := time.ParseDuration(values[len(values)-1]) // a server refuses another value
			sum += max(last-usual, 0)
		}
	}
	return sum
}

// Words returns the flags as on a command line.
func (o OwnFlags) Words() (words []string) {
	if o.RuntimeConfig != nil {
		words = append(words, "--runtime-config="+*o.RuntimeConfig)
	}
	for _, f := range o.Flags {
		words = append(words, "--"+f)
	}
	return words
}
