package proxy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

// unseen are the switches that the comparison cannot see, with the reason.
var unseen = map[string]string{
	"Knowledge.WaitForPeers": "it ends with synchronisation, and both are compared after that only",
	"Knowledge.StaleAfter":   "only the sources of package peers apply it, with keys in etcd: here an address comes as an event",
	"Knowledge.Leaving":      "only the sources of package peers apply it: here a peer is gone when an event says so",
	"Routing.DialTimeout":    "only a transport can apply it (package apiserver): there are no connections here",
	"Routing.Silence":        "only a transport can apply it (package apiserver): there are no connections here",
	"Discovery.Incomplete":   "nothing without FailClosed, which TestWhatIsIncomplete turns on",
	"Fetching.Jitter":        "a share of Interval, which the preset has not",
	"Fetching.OnlyChanged":   "nothing without KeepLastGood: a round that replaces all must go through all",
	"Fetching.AfterChange":   "nothing without OnlyChanged and KeepLastGood",

	"Quirks.UpgradesWithoutIdentity": "upgrades are not compared; TestUpgradesWithoutIdentity compares them",
}

// others are additional values for switches whose value in the reference rarely or never shows a
// difference.
var others = map[string][]any{
	"Knowledge.Extensions":  {proxy.ExtensionsIgnored, proxy.ExtensionsCutOut, proxy.ExtensionsExact},
	"Quirks.ExtensionGrace": {time.Minute, time.Duration(0)},
	"Routing.Attempts":      {2},
	"Discovery.Merge":       {false},
	"Fetching.Retries":      {3},
	"Fetching.LastRetry":    {time.Second},
}

// TestDifferencesAreSeen turns each switch in which the preset differs from the reference, except
// the switches in unseen. The comparison must notice it. Otherwise the comparison's success would
// prove nothing.
func TestDifferencesAreSeen(t *testing.T) {
	upstream, reference := reflect.ValueOf(proxy.Upstream137()), reflect.ValueOf(proxy.Reference())
	met := map[string]bool{} // the switches of unseen that were found
	for i := range upstream.NumField() {
		section := upstream.Type().Field(i)
		if section.Type.Kind() != reflect.Struct {
			continue
		}
		for j := range section.Type.NumField() {
			name := strings.TrimSuffix(section.Name, "Policy") + "." + section.Type.Field(j).Name
			theirs, ours := upstream.Field(i).Field(j), reference.Field(i).Field(j)
			values, ok := others[name]
			if !ok && !theirs.Equal(ours) {
				values = []any{ours.Interface()}
			}
			if _, hidden := unseen[name]; hidden {
				met[name] = len(values) > 0
				continue
			}
			for _, value := range values {
				policy := proxy.Upstream137()
				reflect.ValueOf(&policy).Elem().Field(i).Field(j).Set(reflect.ValueOf(value))
				t.Run(fmt.Sprintf("%s=%v", name, value), func(t *testing.T) { seen(t, policy, differences) })
			}
		}
	}
	for name, why := range unseen {
		if !met[name] {
			t.Errorf("%s is listed as unseen (%s), but the preset and the reference do not differ in it", name, why)
		}
	}
}

// seen fails the test if no history shows a difference.
func seen(t *testing.T, policy proxy.Policy, allowed []listed) {
	t.Helper()
	for seed := range 400 {
		if different := compareHistory(t, uint64(seed), policy, allowed); different != "" {
			t.Logf("seen in history %d", seed)
			return
		}
	}
	t.Error("no difference in 400 histories")
}
