package gates

import (
	"errors"
	"fmt"
	"regexp"
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
	return bare.Has(strings.ReplaceAll(name, "_", "-"))
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
		return nil, fmt.Errorf("%.300q is no list of feature gates: %.300v; did you mean %q?", list, err, correct(list))
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

// These match a word in what should be a list of feature gates, and those for "off".
var (
	listed = regexp.MustCompile(`[A-Za-z0-9]+`)
	off    = regexp.MustCompile(`(?i)^(off|no?|disabled?|f(alse?)?|0)$`)
)

// correct makes a list of feature gates of the beginning of a text: those whose names are most like
// words in the text. They are on, unless the next word says "off".
func correct(text string) string {
	var all []string
	known, _ := everything()
	prefix := ""
	if strings.Contains(text, compatibility.DefaultKubeComponent+":") {
		prefix = compatibility.DefaultKubeComponent + ":"
	}
	for _, word := range listed.FindAllString(text[:min(len(text), 2000)], -1) {
		best, similarity := "", 0.7
		for _, gate := range sets.List(known) {
			if s := levenshtein.Similarity(strings.ToLower(word), strings.ToLower(gate), nil); s > similarity {
				best, similarity = gate, s
			}
		}
		if last := len(all) - 1; best != "" {
			all = append(all, prefix+best+"=true")
		} else if last >= 0 && off.MatchString(word) {
			all[last] = strings.TrimSuffix(all[last], "true") + "false"
		}
	}
	if len(all) == 0 {
		return Proxy + "=true"
	}
	return strings.Join(all, ",")
}
