package gates

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agext/levenshtein"
	"k8s.io/apimachinery/pkg/util/sets"

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

// gatesIn returns the names of the feature gates of a list, without those of other components.
func gatesIn(list string) (names []string) {
	for one := range strings.SplitSeq(list, ",") {
		name, _, has := strings.Cut(strings.TrimPrefix(strings.TrimSpace(one), "kube:"), "=")
		if name = strings.TrimSpace(name); has && !strings.Contains(name, ":") {
			names = append(names, name)
		}
	}
	return names
}

// CheckList returns an error for a text that is no list of feature gates for any version. The error
// says what may be meant.
func CheckList(list string) error {
	for one := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(one, "=")
		if _, err := strconv.ParseBool(strings.TrimSpace(value)); strings.TrimSpace(one) != "" && (err != nil || strings.TrimSpace(name) == "") {
			return fmt.Errorf("%q is no list of feature gates, because %q switches none on or off; did you mean %q?", list, one, correct(list))
		}
	}
	return nil
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
