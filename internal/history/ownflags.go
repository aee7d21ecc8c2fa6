package history

import "strings"

// OwnFlags are the user's own flags for every kube-apiserver of a run, in addition to the run's
// own. The zero value has none.
type OwnFlags struct {
	// RuntimeConfig replaces the run's --runtime-config=api/all=true. nil keeps that flag. Empty
	// means no such flag: every server then has the APIs that are on by default.
	RuntimeConfig *string `json:"runtimeConfig,omitempty"`
	// Flags are further flags, each as NAME=VALUE, without the two hyphens.
	Flags []string `json:"flags,omitempty"`
}

// FeatureGates is the name of the only flag that both the run and the user may give. Their values
// are joined.
const FeatureGates = "feature-gates"

// APIs returns the value of --runtime-config, given the value of the run.
func (o OwnFlags) APIs(usual string) string {
	if o.RuntimeConfig != nil {
		return *o.RuntimeConfig
	}
	return usual
}

// Gates joins the value of --feature-gates that the run gives with the user's own values.
func (o OwnFlags) Gates(usual string) string {
	all := []string{usual}
	if usual == "" {
		all = nil
	}
	for _, f := range o.Flags {
		if name, value, _ := strings.Cut(f, "="); name == FeatureGates {
			all = append(all, value)
		}
	}
	return strings.Join(all, ",")
}

// Others returns the user's own flags except --feature-gates, each with its name and value.
func (o OwnFlags) Others() (all [][2]string) {
	for _, f := range o.Flags {
		if name, value, _ := strings.Cut(f, "="); name != FeatureGates {
			all = append(all, [2]string{name, value})
		}
	}
	return all
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
