package mutants

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

var (
	full  = flag.Bool("full", false, "search for every mutant; without this flag, only for those that are found soon")
	only  = flag.String("only", "", "search only for the mutant of this name")
	from  = flag.Uint64("from", firstSeed, "the first seed")
	rates = flag.Int("rates", within, "BenchmarkRates: how many schedules to count in")
)

const (
	firstSeed = 1
	// within is the maximum number of schedules to find a mutant, and soon is the maximum for a
	// mutant that is not rare.
	within = 20_000
	soon   = 300
)

// TestMutants searches for every mutant. If a mutant is not found, a defect of its kind in the
// proxy would not be found either.
func TestMutants(t *testing.T) {
	var chosen []mutant
	for _, m := range catalogue() {
		if *only == m.name || *only == "" && (*full || !m.rare) {
			chosen = append(chosen, m)
		}
	}
	found := make([]*finding, len(chosen))
	together(len(chosen), func(i int) {
		m := &chosen[i]
		most := soon
		if m.rare {
			most = within
		}
		found[i] = look(t, *m, most)
		switch f := found[i]; {
		case f == nil:
			t.Errorf("%s: not found within %d schedules. %s", m.name, most, m.wrong)
		case *only != "":
			for _, v := range f.by {
				t.Logf("seed %d: %s: %s", f.seed, v.Name, v.Evidence[0].Sentence)
			}
		}
	})
	if testing.Verbose() {
		table(os.Stdout, chosen, found)
	}
	if *only == "" {
		findings.all++
	}
	for _, f := range found {
		if f != nil {
			for _, v := range f.by {
				findings.by(v.Name)
			}
		}
	}
}

// BenchmarkRates counts how many schedules find each rare mutant. After how many schedules a mutant
// is first found depends on chance much more.
func BenchmarkRates(b *testing.B) {
	var chosen []mutant
	for _, m := range catalogue() {
		if m.name == *only || m.rare && *only == "" {
			chosen = append(chosen, m)
		}
	}
	found := make([]int, len(chosen))
	together(len(chosen), func(i int) {
		h, err := newHunter(chosen[i])
		if err != nil {
			b.Error(err)
			return
		}
		defer h.close()
		for done := 0; done < *rates; found[i]++ {
			f, err := h.hunt(*from+uint64(done), *rates-done)
			if err != nil {
				b.Errorf("%s: counting ended after %d of %d schedules: %v", chosen[i].name, done, *rates, err)
				found[i] = -1
				return
			}
			if f == nil {
				return
			}
			done += f.schedules
		}
	})
	for i, m := range chosen {
		switch found[i] {
		case -1:
			continue
		case 0:
			b.Errorf("%s: not found in %d schedules", m.name, *rates)
		}
		fmt.Printf("%s: %d of %d schedules\n", m.name, found[i], *rates)
	}
}

// together calls do for 0 to n-1, on all processors.
func together(n int, do func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// look hunts one mutant.
func look(t *testing.T, m mutant, most int) *finding {
	h, err := newHunter(m)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return nil
	}
	defer h.close()
	f, err := h.hunt(m.begin(), most)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	return f
}

// table prints the results.
func table(to io.Writer, mutants []mutant, found []*finding) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PART\tMUTANT\tSCHEDULES\tFOUND BY\tWHAT IS WRONG")
	for i, m := range mutants {
		schedules, by := "-", "not found"
		if f := found[i]; f != nil {
			schedules, by = fmt.Sprint(f.schedules), f.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.part, m.name, schedules, by, m.wrong)
	}
	_ = w.Flush()
}

// String names the broken invariants.
func (f *finding) String() string {
	var all []string
	for _, v := range f.by {
		name := v.Name
		if !isCore(v) {
			name += " (extended)"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// TestNobodyNotices checks the list of unseen mutants. Each of them must act. A mutant that is
// found belongs to the catalogue.
func TestNobodyNotices(t *testing.T) {
	most := soon / 4
	if *full {
		most = within / 10
	}
	for _, m := range unseen {
		h, err := newHunter(m)
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.hunt(firstSeed, most)
		switch {
		case err != nil:
			t.Errorf("%s: %v", m.name, err)
		case f != nil:
			t.Errorf("%s is found after %d schedules, by %s: it belongs to the catalogue", m.name, f.schedules, f)
		case h.acted == 0 && *full:
			t.Errorf("%s made no difference in %d schedules", m.name, most)
		case testing.Verbose():
			fmt.Printf("%s: %s Not found: %s.\n", m.name, m.wrong, m.blind)
		}
		h.close()
	}
}

func TestCatalogue(t *testing.T) {
	all := catalogue()
	switches := 0
	seen := map[string]bool{}
	for _, m := range slices.Concat(all, flags, unseen) {
		if seen[m.name] {
			t.Errorf("two mutants are called %s", m.name)
		}
		seen[m.name] = true
		if m.plant == nil && m.setup == nil {
			switches++
			if len(m.changes) == 0 {
				t.Errorf("%s plants nothing", m.name)
			}
		}
	}
	if len(all) < 32 || 3*switches > len(all) {
		t.Errorf("%d mutants, of which %d are switches of the policy: want at least 32, and at most a third", len(all), switches)
	}
	const page = "../../docs/simulator.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []string{
		fmt.Sprintf("| random schedules | %d, which are all", len(all)),
		fmt.Sprintf("or a long fault | %d |", len(byScenario)),
		fmt.Sprintf("set the flags | %d: ", len(flags)),
		fmt.Sprintf("| nothing | %d, each", len(unseen)),
	} {
		if !strings.Contains(string(content), count) {
			t.Errorf("%s does not say %q", page, count)
		}
	}
}
