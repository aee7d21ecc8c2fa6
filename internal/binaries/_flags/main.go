// Command kube-apiserver-flags writes the flags, the feature gates and the API groups of the
// kube-apiserver of the version that it is built with, as JSON. Package gates reads it. It uses
// reflection for feature gates, because v1.30 has no gates with a history, and not all versions
// have dependencies.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/spf13/pflag"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

type stage struct {
	Since   string `json:"since"`
	Stage   string `json:"stage"`
	Default bool   `json:"default,omitempty"`
	Locked  bool   `json:"locked,omitempty"`
	// MinCompatibility is the lowest --min-compatibility-version at which this stage counts.
	MinCompatibility string `json:"minCompatibility,omitempty"`
}

type gate struct {
	Name   string   `json:"name"`
	Stages []stage  `json:"stages"`
	Needs  []string `json:"needs,omitempty"`
}

type flag struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Default    string `json:"default,omitempty"`
	NoValue    string `json:"noValue,omitempty"` // what the flag is without a value
	Short      string `json:"short,omitempty"`
	Hidden     bool   `json:"hidden,omitempty"`
	Deprecated string `json:"deprecated,omitempty"`
}

func main() {
	command := app.NewAPIServerCommand()
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println("Kubernetes", version.Get().GitVersion)
		return
	}
	command.InitDefaultHelpFlag()
	var flags []flag
	command.Flags().VisitAll(func(f *pflag.Flag) {
		flags = append(flags, flag{f.Name, f.Value.Type(), f.DefValue, f.NoOptDefVal, f.Shorthand, f.Hidden, f.Deprecated})
	})
	fmt.Printf("{\n\"version\": %q,\n", version.Get().GitVersion)
	list("gates", gates())
	fmt.Println(",")
	list("flags", flags)
	fmt.Println(",")
	list("groups", groups())
	fmt.Println("\n}")
}

// list writes a member of an object, with one element of its list on each line.
func list[T any](name string, all []T) {
	fmt.Printf("%q: [", name)
	for i, one := range all {
		if i > 0 {
			fmt.Print(",")
		}
		line, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		fmt.Printf("\n%s", line)
	}
	fmt.Print("\n]")
}

// groups are the API groups that --runtime-config may name.
func groups() (all []string) {
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregator.Scheme} {
		for _, gv := range scheme.PrioritizedVersionsAllGroups() {
			all = append(all, gv.Group)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func gates() (all []gate) {
	known := reflect.ValueOf(utilfeature.DefaultMutableFeatureGate)
	get := known.MethodByName("GetAllVersioned")
	if !get.IsValid() {
		get = known.MethodByName("GetAll")
	}
	var needs reflect.Value
	if m := known.MethodByName("Dependencies"); m.IsValid() {
		needs = m.Call(nil)[0]
	}
	for each := get.Call(nil)[0].MapRange(); each.Next(); {
		g := gate{Name: each.Key().String()}
		if specs := each.Value(); specs.Kind() == reflect.Slice {
			for i := range specs.Len() {
				g.Stages = append(g.Stages, stageOf(specs.Index(i)))
			}
		} else {
			g.Stages = []stage{stageOf(specs)}
		}
		if needs.IsValid() {
			if of := needs.MapIndex(each.Key()); of.IsValid() {
				for i := range of.Len() {
					g.Needs = append(g.Needs, of.Index(i).String())
				}
			}
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b gate) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func stageOf(spec reflect.Value) stage {
	s := stage{
		Since: "0.0", Stage: spec.FieldByName("PreRelease").String(),
		Default: spec.FieldByName("Default").Bool(), Locked: spec.FieldByName("LockToDefault").Bool(),
	}
	if v := spec.FieldByName("Version"); v.IsValid() && !v.IsNil() {
		s.Since = v.Interface().(fmt.Stringer).String()
	}
	if v := spec.FieldByName("MinCompatibilityVersion"); v.IsValid() && !v.IsNil() {
		s.MinCompatibility = v.Interface().(fmt.Stringer).String()
	}
	return s
}
