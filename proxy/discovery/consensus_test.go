package discovery

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
)

// upstreamMerge merges the same sources with kube-apiserver's own code.
func upstreamMerge(sources []Source) Groups {
	var local Source
	peers := map[string]Groups{}
	for _, s := range sources {
		if s.Local {
			local = s
		} else {
			peers[s.Server] = s.Groups
		}
	}
	return aggregated.TestMergeResources(local.Server, local.Groups, peers)
}

// checkConsensus compares our merge with upstream's, and reports whether anything was merged.
func checkConsensus(t *testing.T, name string, sources []Source) bool {
	t.Helper()
	before := make([]string, len(sources))
	for i := range sources {
		before[i] = encoded(t, sources[i].Groups)
	}
	ours, theirs := MergeConsensus(sources), upstreamMerge(sources)
	if encoded(t, ours) != encoded(t, theirs) {
		t.Fatalf("%s: differs from upstream (-upstream +ours):\n%s", name, cmp.Diff(theirs, ours))
	}
	for i := range sources {
		if encoded(t, sources[i].Groups) != before[i] {
			t.Fatalf("%s: the document of %s was modified", name, sources[i].Server)
		}
	}
	return len(ours) > 0 && !slices.ContainsFunc(sources, func(s Source) bool { return sameBacking(s.Groups, ours) })
}

func TestConsensusIsUpstreamsOnRandomDocuments(t *testing.T) {
	merges := 0
	for seed := range uint64(thorough) {
		r := newRandom(seed)
		r.repeats = seed%4 == 3
		if checkConsensus(t, fmt.Sprintf("seed %d", seed), r.sources(5)) {
			merges++
		}
	}
	if merges < thorough/3 {
		t.Fatalf("only %d of the cases merged anything: the generator is too tame", merges)
	}
}

func TestConsensusIsUpstreamsOnRecordedDocuments(t *testing.T) {
	for _, what := range []string{"api", "apis"} {
		sources := recordedSources(t, what)
		for local := range sources {
			for others := range 1 << len(sources) {
				set := []Source{sources[local]}
				set[0].Local = true
				for i := range sources {
					if i != local && others&(1<<i) != 0 {
						set = append(set, sources[i])
					}
				}
				checkConsensus(t, fmt.Sprintf("/%s, local %s, set %b", what, sources[local].Version, others), set)
			}
		}
	}
}

func TestConsensusOfAPeerWithTheLocalIdentity(t *testing.T) {
	r := newRandom(1)
	for i := range 200 {
		checkConsensus(t, fmt.Sprint(i), []Source{
			{Server: "a", Groups: r.groups()}, {Server: "a", Local: true, Groups: r.groups()}, {Server: pick(r, "a", "b"), Groups: r.groups()},
		})
	}
}
