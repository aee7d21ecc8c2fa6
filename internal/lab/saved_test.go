package lab

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

var slice = flag.String("slice", "", "NAME=DIR,…: directories of finished runs, whose histories become part of the corpus by these names "+
	"(SCENARIO-SUBJECT); then judge it with -full -update")

// savedFiles are the histories of real runs, sliced.
const savedFiles = "testdata/saved"

// mostSaved is the most that all saved histories may need, in bytes.
const mostSaved = 20 << 20

// counts is the invariant that a slice cannot show, unless it holds every operation: it compares
// the number of requests with the servers' counters.
const counts = "CountedAlike"

// sliceForVerdict returns the smallest slice, of those that it tries, that has the same verdicts as
// the whole history. It keeps every record but operations and their hops. Of the operations it
// keeps a number of each class, evenly over the run: those with the same decision, asked server,
// verb, subresource, answer and number of hops. It raises this number until the verdicts are the
// same: the outcomes, the kinds of violations with the findings that explain them, and the decision
// on every operation that is kept. A slice without all operations has no counters of the servers.
// share is the part of the operations that it keeps.
func sliceForVerdict(h *history.History) (sliced *history.History, share float64) {
	verdicts, decisions := invariant.Decide(h)
	known := findings.For(h.Run.Subject)
	labels := map[string]string{}
	var order []string
	classes := map[string][]*history.Operation{}
	hops := map[string]int{}
	for _, hop := range h.Hops {
		hops[hop.Operation]++
	}
	for _, d := range decisions {
		o := d.Operation
		label := labelOf(d, known)
		labels[o.ID] = label
		class := fmt.Sprint(label, o.Server, o.Verb, o.Subresource, o.Status, o.Failure, o.Missing, hops[o.ID])
		if o.GVR.Resource == "" {
			class += o.Path
		}
		if classes[class] == nil {
			order = append(order, class)
		}
		classes[class] = append(classes[class], o)
	}
	want := gist(verdicts, known)
	for quota := 4; ; quota += quota / 4 {
		keep := map[string]bool{}
		for _, class := range order {
			all := classes[class]
			n := min(len(all), quota)
			for i := range n {
				keep[all[i*len(all)/n].ID] = true
			}
		}
		s := *h
		s.Operations = slices.DeleteFunc(slices.Clone(h.Operations), func(o history.Operation) bool { return !keep[o.ID] })
		s.Hops = slices.DeleteFunc(slices.Clone(h.Hops), func(hop history.Hop) bool { return !keep[hop.Operation] })
		whole := len(s.Operations) == len(h.Operations)
		if !whole {
			s.Counted = nil
		}
		s.Run.Environment, s.Run.Reproduce, s.Run.Binaries = nil, "", nil // these may name files of a machine
		s.Documents = usedDocuments(&s)
		verdicts, decisions := invariant.Decide(&s)
		same := maps.Equal(gist(verdicts, known), want)
		for _, d := range decisions {
			same = same && labelOf(d, known) == labels[d.Operation.ID]
		}
		if same || whole {
			return &s, float64(len(s.Operations)) / float64(max(1, len(h.Operations)))
		}
	}
}

// labelOf says what was decided about an operation.
func labelOf(d invariant.Decision, known findings.Catalogue) string {
	if len(d.Wrong) == 0 {
		return d.Undecided
	}
	var words []string
	for _, s := range d.Wrong {
		f, _ := known.Explain(s)
		words = append(words, fmt.Sprint(f.Number))
	}
	slices.Sort(words)
	return "wrong: " + strings.Join(slices.Compact(words), " ")
}

// gist is what a slice must keep of the verdicts.
func gist(verdicts []invariant.Verdict, known findings.Catalogue) map[string]bool {
	out := map[string]bool{}
	for _, v := range verdicts {
		if v.Name == counts {
			continue
		}
		out[v.Name+" "+string(v.Outcome)] = true
		for _, e := range v.Evidence {
			f, _ := known.Explain(e.Signature)
			out[fmt.Sprint(e.Signature.Core(), f.Number)] = true
		}
	}
	return out
}

// usedDocuments are the documents that the records of a slice name.
func usedDocuments(h *history.History) map[string]history.Document {
	used := map[string]history.Document{}
	for _, v := range h.Served {
		used[v.Document] = h.Documents[v.Document]
	}
	for _, o := range h.Operations {
		if d, ok := h.Documents[o.Document]; ok {
			used[o.Document] = d
		}
	}
	return used
}

// sliceRun makes a history of the corpus from the directory of a run.
func sliceRun(t *testing.T, name, dir string) {
	h, err := history.ReadFile(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !h.End.Complete || h.End.Error != "" || h.Run.Unjudged != "" {
		t.Fatalf("%s holds no complete run that is judged", dir)
	}
	sliced, share := sliceForVerdict(h)
	file := filepath.Join(savedFiles, name+".jsonl.gz")
	write(t, file, func(w io.Writer) error { return history.Write(w, sliced) })
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d of %d operations (%.0f %%), %d kB", file, len(sliced.Operations), len(h.Operations), 100*share, info.Size()>>10)
}

// TestSlice makes a history of the corpus from each directory of a run (-slice). Without that
// flag it slices simulated runs, to show that a slice is smaller and has the same verdicts.
func TestSlice(t *testing.T) {
	if *slice != "" {
		for given := range strings.SplitSeq(*slice, ",") {
			name, dir, _ := strings.Cut(given, "=")
			t.Run(name, func(t *testing.T) { sliceRun(t, name, dir) })
		}
		return
	}
	// Scenarios with nodes, whose refusals are of many classes, lose less.
	for _, name := range []string{"etag-and-legacy-clients", "peer-crash"} {
		s, err := scenarios.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		h := simulate(t, s, scenario.SubjectBuiltin)
		known := findings.For(h.Run.Subject)
		sliced, share := sliceForVerdict(h)
		if share > 0.8 {
			t.Errorf("%s: the slice has %.0f %% of the operations", name, 100*share)
		}
		if got, want := gist(invariant.Judge(sliced), known), gist(invariant.Judge(h), known); !maps.Equal(got, want) {
			t.Errorf("%s: the verdicts on the slice are %v, on the whole %v", name, got, want)
		}
	}
}

// saved are the names of the saved histories.
func saved(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(savedFiles, "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".jsonl.gz")
	}
	return files
}

// readSaved reads a saved history.
func readSaved(t testing.TB, name string) (h *history.History) {
	t.Helper()
	read(t, filepath.Join(savedFiles, name+".jsonl.gz"), func(r io.Reader) (err error) {
		h, err = history.Read(r)
		return err
	})
	return h
}

// TestSavedCorpus judges the saved histories of real runs. Without -full it judges every fifth.
func TestSavedCorpus(t *testing.T) {
	got := map[string]expected{}
	var mu sync.Mutex
	var bytes int64
	t.Run("runs", func(t *testing.T) {
		for i, name := range saved(t) {
			info, err := os.Stat(filepath.Join(savedFiles, name+".jsonl.gz"))
			if err != nil {
				t.Fatal(err)
			}
			if bytes += info.Size(); !*full && i%5 != 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := judged(t, readSaved(t, name))
				mu.Lock()
				defer mu.Unlock()
				got[name] = e
			})
		}
	})
	if bytes > mostSaved {
		t.Errorf("the saved histories have %d bytes: at most %d", bytes, mostSaved)
	}
	hold(t, "testdata/saved.json.gz", got, !*full)
}
