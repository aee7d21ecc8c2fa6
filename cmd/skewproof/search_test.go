package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// exitCodeOf is the exit code of an error.
func exitCodeOf(err error) int {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	if err != nil {
		return exitNotRun
	}
	return exitPass
}

func TestExploreLeavesWhatItFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "found")
	out, err := call(t, "explore", "--policy", "upstream-1.37", "--seeds", "40", "--out", dir)
	if code := exitCodeOf(err); code != exitFail {
		t.Fatalf("exit code %d, error %v:\n%s", code, err, out)
	}
	c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Findings {
		if _, err := search.ReadRepro(filepath.Join(dir, f.File)); err != nil {
			t.Errorf("%s: %v", f.ViolationKind, err)
		}
		if !strings.Contains(out, f.File) {
			t.Errorf("the summary does not name %s", f.File)
		}
	}
	if again, err := call(t, "report", dir); exitCodeOf(err) != exitFail || again != out {
		t.Errorf("rendered again, exit code %d:\n%s\nat first:\n%s", exitCodeOf(err), again, out)
	}
	if _, err := call(t, "explore", "--seeds", "1", "--out", dir); exitCodeOf(err) != exitUsage {
		t.Errorf("a second search into the same directory: %v", err)
	}
}

func TestShardsAreMergedByTheCommand(t *testing.T) {
	base := t.TempDir()
	var files []string
	for _, shard := range []string{"1/2", "2/2"} {
		dir := filepath.Join(base, strings.ReplaceAll(shard, "/", "-"))
		if out, err := call(t, "exhaust", "--policy", "none", "--servers", "2", "--resources", "1", "--events", "1", "--shard", shard, "--out", dir); exitCodeOf(err) != exitFail {
			t.Fatalf("shard %s: %v\n%s", shard, err, out)
		}
		files = append(files, filepath.Join(dir, reports.CampaignJSON))
	}
	if _, err := call(t, "report", "merge", files[0], "--out", filepath.Join(base, "half")); exitCodeOf(err) != exitUsage || !strings.Contains(err.Error(), "2/2 are missing") {
		t.Errorf("half of it: %v", err)
	}
	out, err := call(t, "report", "merge", "--out", filepath.Join(base, "whole"), files[0], filepath.Dir(files[1]))
	if exitCodeOf(err) != exitFail || !strings.Contains(out, "14 schedules") {
		t.Errorf("exit code %d:\n%s", exitCodeOf(err), out)
	}
	if _, err := os.Stat(filepath.Join(base, "whole", reports.CampaignHTML)); err != nil {
		t.Error(err)
	}
}

func TestAblateWritesItsTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	out, err := call(t, "ablate", "--from-policy", "upstream-1.36", "--to-policy", "upstream-1.35", "--seeds", "5", "--out", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ablation.txt", "ablation.md", reports.AblationJSON, "ablation.html"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), "Quirks.StaleWhenAlone") {
			t.Errorf("%s does not name the switch:\n%s", name, body)
		}
	}
	for _, want := range []string{"upstream-1.36 with one switch as in upstream-1.35", filepath.Join(dir, "ablation.html")} {
		if !strings.Contains(out, want) {
			t.Errorf("it did not print %q:\n%s", want, out)
		}
	}
	rendersAgain(t, dir, "ablation.html", exitPass)
}

func TestAblateWritesTheSmallestSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	out, err := call(t, "ablate", "--from-policy", "reference", "--change", "Routing.Subresources=false", "--smallest", "--only-schedules", "--seeds", "20", "--out", dir)
	if err != nil || !strings.Contains(out, filepath.Join(dir, "smallest.html")) {
		t.Fatalf("error %v, it printed:\n%s", err, out)
	}
	rendersAgain(t, dir, "smallest.html", exitPass)
}

// An ablation that was ended early compares too little to pass, also when it is rendered again.
func TestAnAblationThatWasEndedEarlyIsRenderedAsSuch(t *testing.T) {
	dir := t.TempDir()
	a := &reports.Ablation{TypeMeta: reports.OfKind(reports.AblationKind), Spec: reports.SearchSpec{Policy: "old"}, To: "new", Switches: 2}
	if err := reports.SaveTables(dir, a); err != nil {
		t.Fatal(err)
	}
	rendersAgain(t, dir, "ablation.html", exitInconclusive)
	if out, err := call(t, "report", dir, "-o", "json"); exitCodeOf(err) != exitInconclusive || !strings.Contains(out, `"kind": "Ablation"`) {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

// Every mistake on a command line is reported as one, before anything runs or is written.
func TestSearchesRefuseWrongFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ line, says string }{
		{"explore --continue x", "--continue means nothing with --backend sim: give each part of a search in the simulator another --shard"},
		{"explore --until-new", "--until-new means nothing with --backend sim"},
		{"explore --backend local --continue x --subject none", "--subject with --continue: a campaign is continued with its own settings; leave --subject out"},
		{"explore --controllers", "--controllers means nothing with --backend sim: the simulator has none"},
		{"explore --backend local --continue x --controllers", "--controllers with --continue: a campaign is continued with its own settings"},
		{"explore --backend local --continue x --out y", "--out with --continue"},
		{"explore --backend local --continue nosuch", "nosuch/campaign.json: no such file or directory; give the directory that a campaign on real servers left"},
		{"explore --policy mine", "upstream-1.37, or none for the feature switched off"},
		{"explore --change Knowledge.KeepLastGood=maybe", `change "Knowledge.KeepLastGood=maybe": want true or false`},
		{"explore --from v1.99.0", "--from v1.99.0 is newer than the default --to"},
		{"explore --policy none --change Routing.Attempts=3", "no switches"},
		{"explore --change Routing.Attempts", "SWITCH=VALUE"},
		{"explore --change Routing.Atempts=3", "no switch"},
		{"explore --change Routing.Attempts=many", "Routing.Attempts"},
		{"explore --from v1.37.1 --to v1.36.3", "is older than"},
		{"explore --to v9.9.9", "not recorded"},
		{"explore --servers -1", "1 to 100"},
		{"explore --servers 101", "1 to 100"},
		{"explore --resources -1", "resources"},
		{"explore --requests -1", "requests"},
		{"explore --seeds 0", "at least 1"},
		{"explore --seeds 5 --for 5s", "not both"},
		{"explore --for 0s", "above 0"},
		{"explore --for soon", `--for "soon": want a time such as`},
		{"explore --workers -1", "--workers -1: want 1 to 1024, or 0"},
		{"explore --workers 1000000", "--workers 1000000: want 1 to 1024, or 0"},
		{"explore --shard 3/2", "I/N"},
		{"explore --shard 0/2", "I/N"},
		{"explore --shard half", "I/N"},
		{"explore --shard 1/10001", "N up to 10000"},
		{"exhaust --shard 1/1000000000", "N up to 10000"},
		{"explore now", "unknown command"},
		{"exhaust --servers 4", "2 to 3"},
		{"exhaust --resources 0", "1 to 2"},
		{"exhaust --events 0", "1 to 6"},
		{"exhaust --servers 3 --events 6", "take fewer"},
		{"ablate --from-policy reference", "the same"},
		{"ablate --from-policy none", "no switches"},
		{"ablate --to-policy mine", "--to-policy"},
		{"ablate --seeds 0", "at least 1"},
		{"report merge", "usage"},
	} {
		_, err := call(t, strings.Fields(c.line)...)
		if code := exitCodeOf(err); code != exitUsage && !strings.HasPrefix(err.Error(), "unknown command") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: exit code %d, %v; want wrong usage that says %q", c.line, code, err, c.says)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("they left %v, error %v", left, err)
	}
	for _, file := range []string{"absent.json", "."} {
		if _, err := call(t, "report", "merge", file); exitCodeOf(err) != exitNotRun {
			t.Errorf("merge %s: %v", file, err)
		}
	}
}

// The command line in a report must repeat the search. The test parses it with the program itself.
func TestTheReproducingCommandIsTheSearch(t *testing.T) {
	spec := reports.SearchSpec{Policy: "upstream-1.37", Changes: []string{"Knowledge.KeepLastGood=true", "Routing.Attempts=3"}, From: "v1.35.4", To: "v1.36.3", Servers: 5, Resources: 4, Requests: 9}
	c := reports.Campaign{Spec: spec, Method: reports.MethodRandom, FirstSeed: 12, Wanted: 345, Of: 3, Shards: []reports.Shard{{Index: 2}}, Strict: true}
	words := strings.Fields(c.Command())
	command, rest, err := newRoot().Find(words[1:])
	if err != nil || command.Name() != "explore" {
		t.Fatalf("it is %v, error %v", command, err)
	}
	if err := command.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"policy", "from", "to", "servers", "resources", "requests", "first", "seeds", "shard", "strict", "change"} {
		got[name] = command.Flag(name).Value.String()
	}
	want := map[string]string{
		"policy": "upstream-1.37", "from": "v1.35.4", "to": "v1.36.3", "servers": "5", "resources": "4", "requests": "9", "first": "12", "seeds": "345", "shard": "2/3",
		"strict": "true", "change": "[Knowledge.KeepLastGood=true,Routing.Attempts=3]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngives %v, want %v", c.Command(), got, want)
	}
}

func TestThreeVersionsAreSearched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "found")
	_, err := call(t, "explore", "--policy", "reference", "--versions", "v1.37.1,v1.35.4,v1.36.3", "--servers", "0", "--seeds", "20", "--out", dir)
	if code := exitCodeOf(err); code == exitUsage || code == exitNotRun {
		t.Fatalf("exit code %d: %v", code, err)
	}
	c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Spec.Versions, " "); got != "v1.35.4 v1.36.3 v1.37.1" || c.Spec.From != "v1.35.4" || c.Spec.To != "v1.37.1" {
		t.Errorf("searched were %s, from %s to %s", got, c.Spec.From, c.Spec.To)
	}
	if want := "--versions v1.35.4,v1.36.3,v1.37.1 --servers 0"; !strings.Contains(c.Command(), want) {
		t.Errorf("the command is %s, want %s in it", c.Command(), want)
	}
	for what, args := range map[string][]string{
		"--from beside it": {"--versions", "v1.36.3,v1.37.1", "--from", "v1.35.4"}, "one": {"--versions", "v1.37.1"}, "none that is recorded": {"--versions", "v1.36.3,v1.99.9"},
		"four": {"--versions", "v1.30.14,v1.35.4,v1.36.3,v1.37.1"},
	} {
		if _, err := call(t, append([]string{"explore", "--seeds", "1"}, args...)...); exitCodeOf(err) != exitUsage {
			t.Errorf("%s: %v", what, err)
		}
	}
}
