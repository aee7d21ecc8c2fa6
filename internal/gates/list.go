package gates

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"
	"k8s.io/apimachinery/pkg/util/sets"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"

	"github.com/skewproof/skewproof/sim/recorded"
)

// everything returns the names of all feature gates, and of all flags that need no value, in all
// recorded versions.
var everything = sync.OnceValues(func() (gates, bare sets.Set[string]) {
	gates, bare = sets.New[string](), sets.New[string]()
	for _, name := range recorded.Names() {
		r, _ := Find(name) // a test reads all recordings
		for _, g := range r.Gates {
			gates.Insert(g.Name)
		}
		for _, f := range r.Flags {
			if f.NoValue != "" {
				bare.Insert(f.Name)
			}
		}
	}
	return gates, bare
})

// Bare reports whether a flag of kube-apiserver does not take its value from the next word.
func Bare(name string) bool {
	_, bare := everything()
	return bare.Has(name)
}

// parse reads lists of feature gates such as "A=true, kube:B=0", with their prefixes. Of two values
// of a gate, the later one counts. The error is about a text that is no such list for any version,
// and says what may be meant.
func parse(lists ...string) (map[string]bool, error) {
	list, all := strings.Join(lists, ","), map[string]bool{}
	err := cliflag.NewMapStringBool(&all).Set(list)
	if _, unnamed := all[""]; unnamed && err == nil {
		err = errors.New("a feature gate has no name")
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no list of feature gates: %w; did you mean %q?", list, err, correct(list))
	}
	return all, nil
}

// CheckList returns an error for a text that is no list of feature gates for any version.
func CheckList(list string) error {
	_, err := parse(list)
	return err
}

// Read returns the feature gates of kube-apiserver in lists, without those of other components. It
// is nil for lists that every server refuses: those that cannot be read, and those with gates with
// and without the prefix "kube:".
func Read(lists ...string) map[string]bool {
	all, err := parse(lists...)
	read := map[string]map[string]bool{"": {}, compatibility.DefaultKubeComponent: {}}
	for name, on := range all {
		component, short, prefixed := strings.Cut(name, ":")
		if !prefixed {
			component, short = "", name
		}
		if of := read[strings.TrimSpace(component)]; of != nil {
			of[strings.TrimSpace(short)] = on
		}
	}
	plain, prefixed := read[""], read[compatibility.DefaultKubeComponent]
	switch {
	case err != nil || len(plain) > 0 && len(prefixed) > 0:
		return nil
	case len(plain) > 0:
		return plain
	}
	return prefixed
}

// With returns a list with feature gates added or changed. They get the prefix "kube:" if the list
// has it, because a server refuses a mixture. A list that cannot be read stays as it is, at the
// beginning.
func With(list string, gates map[string]bool) string {
	all, err := parse(list)
	if err != nil {
		return list + "," + With("", gates)
	}
	prefix := ""
	for name := range all {
		if strings.HasPrefix(name, compatibility.DefaultKubeComponent+":") {
			prefix = compatibility.DefaultKubeComponent + ":"
		}
	}
	for name, on := range gates {
		all[prefix+name] = on
	}
	return cliflag.NewMapStringBool(&all).String() // sorted
}

// separators matches what people write between feature gates instead of a comma.
var separators = regexp.MustCompile(`[;,\s]+`)

// correct makes a list of feature gates of a text: with the names that are most like those in the
// text, and with booleans.
func correct(text string) string {
	var all []string
	known, _ := everything()
	for _, one := range separators.Split(strings.ReplaceAll(text, ": ", "="), -1) {
		name, value, _ := strings.Cut(strings.Trim(one, `-+"'[]{}`), "=")
		best, similarity := name, 0.7
		for _, gate := range sets.List(known) {
			if s := levenshtein.Similarity(strings.ToLower(name), strings.ToLower(gate), nil); s > similarity {
				best, similarity = gate, s
			}
		}
		if best != "" {
			off := slices.Contains([]string{"off", "no", "n", "disabled", "disable", "f", "false", "0"}, strings.ToLower(value))
			all = append(all, fmt.Sprintf("%s=%t", best, !off))
		}
	}
	if len(all) == 0 {
		return Proxy + "=true"
	}
	return strings.Join(all, ",")
}
