// Command kube-apiserver-flags writes the flags, the feature gates, the versions of API groups and
// the admission plugins of the kube-apiserver of the version that it is built with, as JSON.
// Package gates reads it and says what the fields mean. The program uses reflection for feature
// gates, because v1.30 has no gates with a history, and not all versions have dependencies.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/component-base/logs/json/register" // as in cmd/kube-apiserver: it adds flags
	"k8s.io/component-base/version"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

func main() {
	command := app.NewAPIServerCommand()
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println("Kubernetes", version.Get().GitVersion)
		return
	}
	command.InitDefaultHelpFlag()
	lists := [4]map[string]any{{}, {}, {}, {}} // by the name of an element
	gates(lists[0])
	command.Flags().VisitAll(func(f *pflag.Flag) {
		lists[1][f.Name] = object{"name": f.Name, "type": f.Value.Type(), "default": f.DefValue, "noValue": f.NoOptDefVal, "short": f.Shorthand,
			"hidden": f.Hidden, "deprecated": f.Deprecated}.short()
	})
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregator.Scheme} {
		for _, gv := range scheme.PrioritizedVersionsAllGroups() {
			lists[2][gv.Group+"/"+gv.Version] = gv.Group + "/" + gv.Version
		}
	}
	for _, name := range options.NewServerRunOptions().Admission.GenericAdmission.Plugins.Registered() {
		lists[3][name] = name
	}
	fmt.Printf("{\n\"version\": %q", version.Get().GitVersion)
	for i, name := range []string{"gates", "flags", "apis", "plugins"} {
		var lines []string // one element on each
		for _, key := range slices.Sorted(maps.Keys(lists[i])) {
			line, err := json.Marshal(lists[i][key])
			if err != nil {
				panic(err)
			}
			lines = append(lines, string(line))
		}
		fmt.Printf(",\n%q: [\n%s\n]", name, strings.Join(lines, ",\n"))
	}
	fmt.Println("\n}")
}

type object map[string]any

// short leaves out empty fields.
func (o object) short() object {
	maps.DeleteFunc(o, func(_ string, v any) bool { return reflect.ValueOf(v).IsZero() })
	return o
}

func gates(to map[string]any) {
	known := reflect.ValueOf(utilfeature.DefaultMutableFeatureGate)
	get, needs := known.MethodByName("GetAllVersioned"), known.MethodByName("Dependencies")
	if !get.IsValid() {
		get = known.MethodByName("GetAll")
	}
	for each := get.Call(nil)[0].MapRange(); each.Next(); {
		stages, specs := []object{}, each.Value()
		if specs.Kind() == reflect.Slice {
			for i := range specs.Len() {
				stages = append(stages, stage(specs.Index(i)))
			}
		} else {
			stages = append(stages, stage(specs))
		}
		gate := object{"name": each.Key().String(), "stages": stages}
		if needs.IsValid() {
			if of := needs.Call(nil)[0].MapIndex(each.Key()); of.IsValid() && of.Len() > 0 {
				gate["needs"] = of.Interface()
			}
		}
		to[each.Key().String()] = gate
	}
}

func stage(spec reflect.Value) object {
	text := func(field string) string {
		if v := spec.FieldByName(field); v.IsValid() && !v.IsNil() {
			return v.Interface().(fmt.Stringer).String()
		}
		return ""
	}
	return object{"since": text("Version"), "stage": spec.FieldByName("PreRelease").String(), "default": spec.FieldByName("Default").Bool(),
		"locked": spec.FieldByName("LockToDefault").Bool(), "minCompatibility": text("MinCompatibilityVersion")}.short()
}
