package discovery

import (
	"testing"
)

// FuzzMerge merges arbitrary documents of three servers. The merge must not panic or lose anything,
// and must not depend on the order of the sources. MergeConsensus must equal upstream's merge.
func FuzzMerge(f *testing.F) {
	const one = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"a"},"versions":[{"version":"v1","resources":[{"resource":"r","verbs":["get","get"]},{"resource":"r"}]}]},{"metadata":{"name":"a"}}]}`
	f.Add([]byte(one), []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{}]}`), []byte(one), "v1.37.1", "v1.36.3")
	for _, body := range recordedFiles(f, "api") {
		f.Add(body, []byte(one), body, "", "v1.0.0")
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte, versionA, versionB string) {
		var sources []Source
		for i, body := range [][]byte{a, b, c} {
			groups, err := Decode("", body)
			if err != nil {
				return
			}
			sources = append(sources, Source{
				Server: string(rune('a' + i)), Version: []string{versionA, versionB, "v1.36.3"}[i], Local: i == 1, Groups: groups,
			})
		}
		merged := Merge(sources)
		union, got := map[string]int{}, facts(merged)
		for _, s := range sources {
			addFacts(union, s.Groups)
		}
		for fact := range union {
			if got[fact] == 0 {
				t.Fatalf("%q is lost", fact)
			}
		}
		for fact := range got {
			if union[fact] == 0 {
				t.Fatalf("%q is invented", fact)
			}
		}
		if swapped := Merge([]Source{sources[2], sources[0], sources[1]}); encoded(t, swapped) != encoded(t, merged) {
			t.Fatalf("depends on the order:\n%s\n%s", encoded(t, merged), encoded(t, swapped))
		}
		checkConsensus(t, "fuzzed", sources)
	})
}
