package findings_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/scenarios"
)

// A finding that is private first says what is wrong, and not how to cause it.
func TestWhatIsPrivateFirstTeachesNothing(t *testing.T) {
	const plain = `{apiVersion: skewproof/v1alpha1, kind: Finding, number: 1000, title: T, symptom: "One. Two. Three.", grade: core,
		disclosure: private first, matches: [{invariants: [NoLoop], mechanisms: [watch], wrong: [came back]}]}`
	if _, err := findings.Parse([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{
		"cause: C", "impact: I", "confirmed: C", "reproduce: make scenario NAME=quiet", "scenarios: [quiet]", "switches: [Routing.Attempts]",
		"upstream: [a file]", "chance: C",
		`upgrade: {since: "1.34", proxy: "on", when: w, deleted: d, hangs: h, noticed: n, lasts: l}`,
	} {
		if _, err := findings.Parse([]byte(strings.Replace(plain, "grade: core,", "grade: core, "+more+",", 1))); err == nil {
			t.Errorf("%s was taken", more)
		}
	}
	if _, err := findings.Parse([]byte(strings.Replace(plain, "Three.", "Three. Four.", 1))); err == nil {
		t.Error("a fourth sentence was taken")
	}
	private := 0
	for _, f := range findings.All() {
		if f.Disclosure == findings.PrivateFirst {
			private++
		}
	}
	if private == 0 {
		t.Error("no finding is private first, so nothing was tested")
	}
}

// A crowd starves other callers of a proxy that does not keep them apart. So scenarios send it to the
// reference only, which must.
func TestCrowdsAreForTheReference(t *testing.T) {
	crowds := 0
	for _, s := range scenarios.All() {
		plan := s.Plan(scenario.Parameters{Servers: 3, From: "v1.36.3", To: "v1.37.1"})
		if !slices.ContainsFunc(plan.Steps, func(step scenario.Step) bool { return step.Action == scenario.StartCrowd }) {
			continue
		}
		crowds++
		if s.Limits.AllowsSubject(scenario.SubjectBuiltin) {
			t.Errorf("%s sends a crowd to released proxies", s.Name)
		}
	}
	if crowds == 0 {
		t.Error("no scenario has a crowd, so nothing was tested")
	}
}

// No file of this repository has a request that takes a header of the hop away: no list of headers
// names one that released servers know.
func TestNoListNamesAHeaderOfPeers(t *testing.T) {
	lists := regexp.MustCompile(`(?i)(connection|trailer)"?\s*[:,][^\n\\]{0,60}(\bHopHeader\b|` + proxy.HopHeader + `)`)
	if !lists.MatchString("Connection: close, "+proxy.HopHeader) || lists.MatchString(`"Connection", HopHeaderPublished`) {
		t.Fatal("the test does not see what it looks for")
	}
	read := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains([]string{".git", "bin", "_out"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !slices.Contains([]string{".go", ".json", ".md", ".sh", ".yaml"}, filepath.Ext(path)) || filepath.Base(path) == "private_test.go":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		if found := lists.Find(content); found != nil {
			t.Errorf("%s: %s", path, found)
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Errorf("%d files were read; error %v", read, err)
	}
}
