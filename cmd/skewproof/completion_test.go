package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completed returns the offers of a shell after the words, without descriptions.
func completed(t *testing.T, words ...string) (offers []string) {
	t.Helper()
	out, err := call(t, append([]string{"__complete"}, words...)...)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(out, "\n") {
		offer, _, _ := strings.Cut(line, "\t")
		offers = append(offers, offer)
	}
	return offers
}

func TestCompletionOfNamesAndLists(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
		not   string
	}{
		{[]string{"run", ""}, "rolling-upgrade", ""},
		{[]string{"explore", "--policy", ""}, "upstream-1.37", ""},
		{[]string{"ablate", "--from-policy", ""}, "reference", ""},
		{[]string{"matrix", "--scenarios", "quiet,"}, "quiet,rolling-upgrade", "quiet,quiet"},
		{[]string{"matrix", "--subjects", ""}, "reference", ""},
		{[]string{"matrix", "--pairs", "v1.35.4..v1.36.3,"}, "v1.35.4..v1.36.3,v1.36.3..v1.37.1", "v1.35.4..v1.36.3,v1.35.4..v1.36.3"},
		{[]string{"conformance", "--labels", ""}, "smoke", "rolling-upgrade"},
		{[]string{"plan", "--from", "v1.36.3", "-o", ""}, "markdown", "or"},
	} {
		got := completed(t, c.words...)
		if !slices.Contains(got, c.want) || c.not != "" && slices.Contains(got, c.not) {
			t.Errorf("%q: %q, want %q and not %q", c.words, got, c.want, c.not)
		}
	}
}

// A run without a scenario leads on.
func TestBareRunLeadsOn(t *testing.T) {
	for words, want := range map[string]string{"run": "skewproof run rolling-upgrade --backend sim", "run quiet canary-upgrade": "quiet, canary-upgrade"} {
		if _, err := call(t, strings.Fields(words)...); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", words, err, want)
		}
	}
}

// A dry run of the suite shows every run with its flags, and leaves nothing.
func TestADryRunOfTheSuite(t *testing.T) {
	t.Chdir(t.TempDir())
	out, err := call(t, "conformance", "--backend", "sim", "--labels", "quiet", "--qps", "77", "--seed", "9", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"skewproof run quiet --backend sim", "--qps 77", "--seed 9", "--subject none"} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "rolling-upgrade") {
		t.Errorf("it has a scenario that was not chosen:\n%s", out)
	}
}

func TestCompletionOfVersionsContextsAndExplanations(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`{contexts: [{name: cp-1, context: {cluster: c}}, {name: cp-2, context: {cluster: c}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // no binaries, no recordings
	own := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "v1.38.0-apis.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		want  string
		not   string
	}{
		{[]string{"plan", "--from", ""}, "v1.36.3", "v1.38.0"},
		{[]string{"plan", "--to", ""}, "v1.38.0-beta.0", ""},
		{[]string{"run", "--to", ""}, "v1.37.1", "v1.38.0-beta.0"},
		{[]string{"plan", "--documents", own, "--to", ""}, "v1.38.0", ""},
		{[]string{"explore", "--to", ""}, "v1.37.1", ""},
		{[]string{"explore", "--versions", "v1.36.3,"}, "v1.36.3,v1.37.1", ""},
		{[]string{"run", "--from", ""}, "v1.36.3", ""},
		{[]string{"run", "--kubeconfig", kubeconfig, "--contexts", "cp-1,"}, "cp-1,cp-2", "cp-1,cp-1"},
		{[]string{"conformance", "--contexts", ""}, "cp-1", ""},
		{[]string{"conformance", "--kubeconfig", "nosuch", "--contexts", ""}, ":6", "cp-1"},
		{[]string{"finding", ""}, "2", "1000"},
		{[]string{"finding", "2", ""}, "1", "2"},
		{[]string{"finding", "-o", ""}, "yaml", ""},
		{[]string{"explain", ""}, "NoFalseNotFound", ""},
		{[]string{"explain", "Converges", ""}, "NoCrash", "Converges"},
	} {
		got := completed(t, c.words...)
		if !slices.Contains(got, c.want) || c.not != "" && slices.Contains(got, c.not) {
			t.Errorf("%q: %q, want %q and not %q", c.words, got, c.want, c.not)
		}
	}
}

func TestCompletionOfDirectories(t *testing.T) {
	for _, command := range []string{"step", "shell"} {
		if got := completed(t, command, ""); !slices.Contains(got, ":16") {
			t.Errorf("%s: %q, want directories", command, got)
		}
	}
}
