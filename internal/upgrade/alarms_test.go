package upgrade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

// recordOf reads what was measured.
func recordOf(t *testing.T) (r AlarmRecord) {
	t.Helper()
	content, err := os.ReadFile("alarms.json")
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every alarm of the table rose on real servers, within the time that plans say, and what is said
// to stay flat did. The recording has nothing else.
func TestAlarmsWereMeasured(t *testing.T) {
	record := recordOf(t)
	if record.Quiet < 60 {
		t.Errorf("signs were flat for %d s before, want a minute", record.Quiet)
	}
	table := Alarms(planOf(t, record.From, record.To, Flags{}))
	unused := map[string]bool{}
	for _, s := range table.Situations {
		unused[s.Name] = true
	}
	for _, a := range alarms().Alarms {
		if _, err := regexp.Compile(a.Match); err != nil || (a.Match != "") != (a.Where == OfCommand) || places[a.Where] == "" ||
			a.Bad == "" || a.Means == "" || len(a.Rings) == 0 || a.Stop != "" && strings.Contains(a.Stop, "SIGN") != (a.Where != OfCommand) {
			t.Errorf("%+v", a)
		}
		for _, r := range a.Rings {
			delete(unused, r.Situation)
			within, s := float64(r.Within), record.Rung[a.Name][r.Situation]
			if s == 0 || s > within || r.Because == "" && within > 2*s+15 {
				t.Errorf("%s in %q: plans say within %d s, measured were %.1f s", a.Name, r.Situation, r.Within, s)
			}
		}
		if len(record.Rung[a.Name]) != len(a.Rings) {
			t.Errorf("%s was measured in %v", a.Name, record.Rung[a.Name])
		}
	}
	for _, s := range table.Silent {
		if !slices.Equal(record.Flat[s.Sign], s.Situations) {
			t.Errorf("%s stayed flat in %q, and is said to in %q", s.Sign, record.Flat[s.Sign], s.Situations)
		}
	}
	if len(record.Rung) != len(alarms().Alarms) || len(record.Flat) != len(table.Silent) || len(unused) > 0 {
		t.Errorf("%d alarms were measured, and %d flat signs; no alarm rises in %v", len(record.Rung), len(record.Flat), unused)
	}
}

// metricName is a metric in a text, with labels if it has any.
var metricName = regexp.MustCompile(`\b(?:apiserver|aggregator|rest_client|process|etcd|workqueue)_[a-z_]+[a-z](?:\{[^}]*\})?`)

// Plans and findings name no metric, and no labels of it, that was not seen to rise.
func TestOnlyMeasuredMetricsAreNamed(t *testing.T) {
	texts := map[string]string{}
	for _, pair := range [][2]string{{"v1.36.3", "v1.37.1"}, {"v1.35.4", "v1.36.3"}, {"v1.34.4", "v1.35.4"}, {"v1.30.14", "v1.34.4"}} {
		for _, flags := range []Flags{{}, with(gateOn, peerCA)} {
			content, err := json.Marshal(planOf(t, pair[0], pair[1], flags))
			if err != nil {
				t.Fatal(err)
			}
			texts[fmt.Sprint("the plan of ", pair, flags)] = strings.ReplaceAll(string(content), `\"`, `"`)
		}
	}
	for _, f := range findings.All() {
		where := fmt.Sprint("finding ", f.Number)
		texts[where] = f.Symptom + f.Avoid
		if f.Upgrade != nil {
			texts[where] += f.Upgrade.When + f.Upgrade.Hangs + f.Upgrade.Noticed + f.Upgrade.Lasts
		}
	}
	named := 0
	for where, text := range texts {
		for _, name := range metricName.FindAllString(text, -1) {
			named++
			if !slices.ContainsFunc(alarms().Alarms, func(a Alarm) bool {
				return a.Sign == name && (a.Where == OfServer || a.Where == OfControllers)
			}) {
				t.Errorf("%s names %s, which is no alarm of alarms.yaml", where, name)
			}
		}
	}
	if named < 50 {
		t.Errorf("metrics are named %d times", named)
	}
}

// A condition to stop is about signs that the older servers have.
func TestStopFitsTheServers(t *testing.T) {
	on := with(gateOn, peerCA)
	for _, c := range []struct {
		from, to string
		flags    Flags
		want     map[string]bool
	}{
		{"v1.36.3", "v1.37.1", on, map[string]bool{"fetch_discovery": true, `code="503"`: true, "clustertrustbundles": true}},
		{"v1.35.4", "v1.36.3", on, map[string]bool{"fetch_discovery": false, `code="503"`: true, "clustertrustbundles": false}},
		{"v1.34.4", "v1.35.4", Flags{}, map[string]bool{"fetch_discovery": false, `code="503"`: false, "Terminating": true}},
	} {
		p := planOf(t, c.from, c.to, c.flags)
		stop := strings.Join(append(p.Stop, p.StopCommands...), "\n")
		for text, want := range c.want {
			if strings.Contains(stop, text) != want {
				t.Errorf("%s → %s: the conditions to stop name %q: %v, want %v:\n%s", c.from, c.to, text, !want, want, stop)
			}
		}
		if strings.Contains(stop, "SIGN") || strings.Contains(stop, "KIND") || strings.Contains(stop, "PROBE") {
			t.Errorf("a place is not filled: %s", stop)
		}
	}
}

// docs/alarms.md is made from the table and the recording.
func TestAlarmsPage(t *testing.T) {
	var b bytes.Buffer
	record := recordOf(t)
	prose := func(text string) { b.WriteString(golden.Wrap(text, "") + "\n\n") }
	prose("# Alarms")
	prose(fmt.Sprintf("What tells an operator that something is wrong during an upgrade, and how soon. `make alarms` made every situation of this page on real "+
		"servers: one %s, five %s, and kube-controller-manager %[2]s. Every sign was flat for %d s before its situation, while clients sent two requests a "+
		"second for a kind that only the newer server serves. The table is [alarms.yaml](../internal/upgrade/alarms.yaml), what was measured is "+
		"[alarms.json](../internal/upgrade/alarms.json). Plans name only these signs.", record.To, record.From, record.Quiet))
	prose("## What rises")
	table := Alarms(planOf(t, record.From, record.To, Flags{}))
	for _, a := range table.Alarms {
		prose(fmt.Sprintf("**%s** (%s). %s", a.Name, places[a.Where], a.Means))
		fmt.Fprintf(&b, "```bash\n%s\n```\n\n", a.Sign)
	}
	b.WriteString("| alarm | situation | rises within | measured |\n|---|---|---|---|\n")
	for _, a := range table.Alarms {
		for _, r := range a.Rings {
			within := fmt.Sprintf("%d s", r.Within)
			if r.Because != "" {
				within += ": " + r.Because
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.1f s |\n", a.Name, r.Situation, within, record.Rung[a.Name][r.Situation])
		}
	}
	b.WriteString("\n")
	prose("Metrics and logs were read once a second; commands were carried out every three seconds. Times count from the beginning of the situation. A restart " +
		"itself takes about four seconds of them.")
	prose("## The situations")
	for _, s := range table.Situations {
		b.WriteString(golden.Wrap("- **"+s.Name+"**: "+s.Made, "  ") + "\n")
	}
	b.WriteString("\n")
	prose("## What does not rise")
	b.WriteString("| metric of the asked server | stayed flat in | why |\n|---|---|---|\n")
	for _, s := range table.Silent {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Sign, strings.Join(s.Situations, ", "), s.Why)
	}
	b.WriteString("\n")
	prose(fmt.Sprintf("The deletion of a namespace took %.1f s while nothing failed. When the first requests had got 503, a new request for what only the peer "+
		"serves got 503 after %.1f s if the peer hung, and after %.1f s if packets to it were dropped.", record.Emptied, record.Later.Paused,
		record.Later.Dropped))
	golden.Hold(t, "../../docs/alarms.md", strings.TrimSuffix(b.String(), "\n"))
}

// The words for the times of an alarm name each time once.
func TestRises(t *testing.T) {
	table := AlarmTable{Situations: []Situation{{Name: "a", Words: "A"}, {Name: "b", Words: "B"}, {Name: "c", Words: "C"}}}
	a := Alarm{Rings: []Ring{{"a", 2, ""}, {"b", 2, ""}, {"c", 50, ""}}}
	if got := table.rises(a); got != "2 s of A, B; 50 s of C" {
		t.Errorf("%q", got)
	}
	if len(watched(Alarms(reports.UpgradePlan{From: "v1.36.3", To: "v1.37.1"}))) >= len(alarms().Alarms) {
		t.Error("without kinds that differ, a plan has a path for a probe")
	}
}
