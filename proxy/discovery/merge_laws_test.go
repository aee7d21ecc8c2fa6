package discovery

import (
	"fmt"
	"slices"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// laws checks the laws in the documentation of Merge for one set of sources.
func laws(t *testing.T, name string, sources []Source, shuffle func(n int, swap func(i, j int))) {
	t.Helper()
	before := make([]string, len(sources))
	for i := range sources {
		before[i] = encoded(t, sources[i].Groups)
	}
	merged := Merge(sources)
	want := encoded(t, merged)

	// The result depends only on the set: neither the order of the sources nor the local one
	// matters.
	permuted := slices.Clone(sources)
	shuffle(len(permuted), func(i, j int) { permuted[i], permuted[j] = permuted[j], permuted[i] })
	for i := range permuted {
		permuted[i].Local = i == 0
	}
	if got := encoded(t, Merge(permuted)); got != want {
		t.Fatalf("%s: depends on the order of the sources:\n%s\n%s", name, want, got)
	}

	// The result lists everything that a source lists, and nothing else.
	union := map[string]int{}
	for _, s := range sources {
		addFacts(union, s.Groups)
	}
	sameFacts(t, name, union, facts(merged))

	// Idempotent: copies of the sources, or the merge itself as the newest source, change nothing.
	newest := NewestFirst(sources)
	doubled := slices.Clone(sources)
	for _, s := range sources {
		s.Server += "-again"
		doubled = append(doubled, s)
	}
	if got := encoded(t, Merge(doubled)); got != want {
		t.Fatalf("%s: not idempotent:\n%s\n%s", name, want, got)
	}
	absorbed := append([]Source{{Server: "merged", Version: "v99.0.0", Groups: merged}}, sources...)
	if got := encoded(t, Merge(absorbed)); len(merged) > 0 && got != want {
		t.Fatalf("%s: the merge, added as the newest, changes it:\n%s\n%s", name, want, got)
	}

	// Associative: any number of the newest sources may be merged first. If other sources are
	// merged first, the result still lists the same.
	for k := 1; k <= len(newest); k++ {
		first := Source{Server: newest[0].Server, Version: newest[0].Version, Groups: Merge(newest[:k])}
		if got := encoded(t, Merge(append([]Source{first}, newest[k:]...))); got != want {
			t.Fatalf("%s: merging the newest %d first gives something else:\n%s\n%s", name, k, want, got)
		}
		last := Source{Server: "last", Version: "", Groups: Merge(newest[k:])}
		sameFacts(t, name, union, facts(Merge(append(slices.Clone(newest[:k]), last))))
	}

	checkOrder(t, name, newest, merged)
	for i := range sources {
		if encoded(t, sources[i].Groups) != before[i] {
			t.Fatalf("%s: the document of %s was modified", name, sources[i].Server)
		}
	}
}

func facts(groups Groups) map[string]int {
	out := map[string]int{}
	addFacts(out, groups)
	return out
}

func addFacts(out map[string]int, groups Groups) {
	for _, g := range groups {
		out[g.Name]++
		for _, v := range g.Versions {
			out[g.Name+"/"+v.Version]++
			for _, r := range v.Resources {
				resource := g.Name + "/" + v.Version + " " + r.Resource
				out[resource]++
				for _, verb := range r.Verbs {
					out[resource+":"+verb]++
				}
				for _, s := range r.Subresources {
					out[resource+"/"+s.Subresource]++
					for _, verb := range s.Verbs {
						out[resource+"/"+s.Subresource+":"+verb]++
					}
				}
			}
		}
	}
}

func sameFacts(t *testing.T, name string, want, got map[string]int) {
	t.Helper()
	for fact := range want {
		if got[fact] == 0 {
			t.Fatalf("%s: %q is lost", name, fact)
		}
	}
	for fact, times := range got {
		if want[fact] == 0 {
			t.Fatalf("%s: %q is invented", name, fact)
		}
		if times > 1 {
			t.Fatalf("%s: %q is listed %d times", name, fact, times)
		}
	}
}

// checkOrder checks that groups, versions and resources have the order of the newest server that
// knows them, and that versions are in the order of their stability.
func checkOrder(t *testing.T, name string, newest []Source, merged Groups) {
	t.Helper()
	for _, s := range newest {
		if len(s.Groups) > 0 {
			checkSubsequence(t, name, namesOf(s.Groups, groupLevel.key), namesOf(merged, groupLevel.key))
			break
		}
	}
	for _, g := range merged {
		own := firstKnowing(newest, g.Name)
		checkSubsequence(t, name, namesOf(own, versionLevel.key), namesOf(g.Versions, versionLevel.key))
		if len(own) > 0 && g.Versions[0].Version != own[0].Version && stability(g.Versions[0].Version) <= stability(own[0].Version) {
			t.Fatalf("%s: %s prefers %s to the newest server's %s", name, g.Name, g.Versions[0].Version, own[0].Version)
		}
		for i, first := range g.Versions {
			for _, second := range g.Versions[i+1:] {
				if stability(first.Version) >= stability(second.Version) {
					continue
				}
				place := slices.IndexFunc(own, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == first.Version })
				if place < 0 || !slices.ContainsFunc(own[place:], func(v apidiscoveryv2.APIVersionDiscovery) bool {
					return stability(v.Version) >= stability(second.Version)
				}) {
					t.Fatalf("%s: %s/%s goes before %s, which no server wants; the newest has %q",
						name, g.Name, first.Version, second.Version, namesOf(own, versionLevel.key))
				}
			}
		}
	}
}

func firstKnowing(newest []Source, group string) []apidiscoveryv2.APIVersionDiscovery {
	for _, s := range newest {
		for _, g := range s.Groups {
			if g.Name == group {
				return g.Versions
			}
		}
	}
	return nil
}

func checkSubsequence(t *testing.T, name string, part, whole []string) {
	t.Helper()
	i := 0
	for _, item := range whole {
		if i < len(part) && part[i] == item {
			i++
		}
	}
	if i != len(part) {
		t.Fatalf("%s: %q does not keep the order of %q", name, whole, part)
	}
}

func TestLawsOnRandomDocuments(t *testing.T) {
	changed := 0
	for seed := range uint64(thorough / 2) {
		r := newRandom(seed)
		sources := r.sources(5)
		laws(t, fmt.Sprintf("seed %d", seed), sources, r.Shuffle)
		if encoded(t, Merge(sources)) != encoded(t, sources[0].Groups) {
			changed++
		}
	}
	if changed < thorough/6 {
		t.Fatalf("only %d of the cases merged anything: the generator is too tame", changed)
	}
}

func TestLawsOnAllPermutationsOfRecordedDocuments(t *testing.T) {
	for _, what := range []string{"api", "apis"} {
		sources := recordedSources(t, what)
		want := encoded(t, Merge(sources))
		permutations(len(sources), func(order []int) {
			permuted := make([]Source, len(order))
			for i, from := range order {
				permuted[i] = sources[from]
				permuted[i].Local = i == 0
			}
			if got := encoded(t, Merge(permuted)); got != want {
				t.Fatalf("/%s: order %v gives something else", what, order)
			}
		})
		r := newRandom(7)
		for set := 1; set < 1<<len(sources); set++ {
			var some []Source
			for i := range sources {
				if set&(1<<i) != 0 {
					some = append(some, sources[i])
				}
			}
			laws(t, fmt.Sprintf("/%s set %b", what, set), some, r.Shuffle)
		}
	}
}

// permutations calls f with every order of n things (Heap's algorithm).
func permutations(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(k int)
	permute = func(k int) {
		if k <= 1 {
			f(order)
			return
		}
		for i := range k {
			permute(k - 1)
			if k%2 == 0 {
				order[i], order[k-1] = order[k-1], order[i]
			} else {
				order[0], order[k-1] = order[k-1], order[0]
			}
		}
	}
	permute(n)
}
