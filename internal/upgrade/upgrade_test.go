package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim/recorded"
)

func planOf(t testing.TB, from, to string, flags Flags) reports.UpgradePlan {
	t.Helper()
	older, newer, err := Find(from, to)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := Make(Options{From: older, To: newer, Flags: flags, Version: "v0.1.0"})
	return p
}

func TestGoldenPlans(t *testing.T) {
	for _, pair := range [][2]string{{"v1.36.3", "v1.37.1"}, {"v1.35.4", "v1.36.3"}} {
		p := planOf(t, pair[0], pair[1], Flags{})
		for ending, write := range map[string]func(io.Writer, reports.UpgradePlan) error{
			"txt": reports.WritePlanText, "wide.txt": reports.WritePlanWide, "md": reports.WritePlanMarkdown, "html": reports.WritePlanHTML, "json": reports.WritePlanJSON,
		} {
			var b bytes.Buffer
			if err := write(&b, p); err != nil {
				t.Fatal(err)
			}
			golden.Hold(t, filepath.Join("testdata", pair[0]+"-"+pair[1]+"."+ending), b.String())
		}
	}
}

// peerCA is the authority of kubeadm's default directory.
const peerCA = gates.Certificates + "/ca.crt"

// flagSets are flags of the servers for tests over all pairs.
var flagSets = []Flags{{}, with("", peerCA), with(gateOn, peerCA), with("RemoteRequestHeaderUID=false", ""),
	with("kube:WatchList=true", "").With("etcd-servers", "https://10.0.0.1:2379").With("etcd-cafile", peerCA).With("advertise-address", "10.0.0.1")}

// with are flags of the servers, as far as they are not empty.
func with(list, authority string) Flags {
	return Flags{}.With(history.FeatureGates, list).With(gates.PeerCAFile, authority)
}

// Whatever the versions and flags, the text has at most 150 lines, ten steps and three harms, and
// says nothing twice. The wide form has every user, finding and metric.
func TestAPlanIsShort(t *testing.T) {
	for i, from := range recorded.Names() {
		for j, to := range recorded.Names()[i:] {
			flags := flagSets[(i+j)%len(flagSets)] // each set comes up with nearly every version
			p := planOf(t, from, to, flags)
			var short, full bytes.Buffer
			if err := errors.Join(reports.WritePlanText(&short, p), reports.WritePlanWide(&full, p)); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(short.String(), "\n"); lines > 150 || len(p.Checklist) > 10 || len(p.Harms) > 3 {
				t.Errorf("%s → %s with %+v: %d lines, %d steps, %d harms", from, to, flags, lines, len(p.Checklist), len(p.Harms))
			}
			words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
			shortWords, fullWords := words(short.String()), words(full.String())
			seen := map[string]bool{}
			for _, text := range slices.Concat(p.Notes, p.Stop, p.Back) {
				seen[text] = true
			}
			for _, s := range p.Checklist {
				seen[s.Text] = s.Text != ""
			}
			for text := range seen {
				first := words(strings.ReplaceAll(text, "`", ""))
				if n := strings.Count(shortWords, first); text != "" && n != 1 {
					t.Errorf("%s → %s with %+v: %d times %q", from, to, flags, n, first)
				}
			}
			for _, f := range p.Findings {
				if !strings.Contains(fullWords, strings.ReplaceAll(f.Noticed, "`", "")) {
					t.Errorf("%s → %s: the wide form lacks finding %d", from, to, f.Number)
				}
			}
		}
	}
}

// What a plan claims about v1.30.14 → v1.34.4 is in the recordings and in the release notes.
func TestClaims(t *testing.T) {
	p := planOf(t, "v1.30.14", "v1.34.4", Flags{})
	harms := fmt.Sprintf("%+v", p.Harms)
	for _, want := range []string{"podschedulingcontexts", "resourceclaimparameters", "resourceclasses", "resourceclassparameters", "in no version", "ownerReference", "never resolved"} {
		if !strings.Contains(harms, want) {
			t.Errorf("the harms lack %q: %s", want, harms)
		}
	}
	if !strings.Contains(p.Sentence, "By default") {
		t.Errorf("defaults are recorded: %s", p.Sentence)
	}
	if len(p.Demands) != 2 || len(p.Rehearsal) != 0 || len(p.Comparison) != 0 {
		t.Errorf("%d demands, want those of v1.32 and v1.34; %d rehearsals and %d comparisons, and the designs do not mix",
			len(p.Demands), len(p.Rehearsal), len(p.Comparison))
	}
	// finding 47 does harm, but denies no kind
	if harms := fmt.Sprint(planOf(t, "v1.36.3", "v1.37.1", with(gateOn, peerCA)).Harms); !strings.Contains(harms, "serves, in every upgrade (finding 24), in a partition") {
		t.Errorf("with the proxy the harms are %s", harms)
	}
	for _, pair := range [][2]string{{"v1.36.3", "v1.37.1"}, {"v1.35.4", "v1.36.3"}, {"v1.37.1", "v1.37.1"}} {
		for _, d := range planOf(t, pair[0], pair[1], Flags{}).Demands {
			if pair[1] != "v1.37.1" || pair[0] == pair[1] || d.Minor != "v1.37" {
				t.Errorf("%v: %+v", pair, d)
			}
		}
	}
}

// From v1.37.1 to v1.38.0-beta.0 nothing changes by default. Its gates are recorded, its flags are
// not.
func TestAPlanForABeta(t *testing.T) {
	p := planOf(t, "v1.37.1", "v1.38.0-beta.0", with("AllocatorPoolBufferCap=true", ""))
	if len(p.Appears) != 0 || len(p.Vanishes) != 4 || len(byDefault(p.Vanishes)) != 0 {
		t.Errorf("it appears %+v, and vanishes %+v", p.Appears, p.Vanishes)
	}
	if s := p.Protection[0]; s.Old.Starts || !s.New.Starts || !strings.Contains(s.Old.Why, "unrecognized feature gate: AllocatorPoolBufferCap") {
		t.Errorf("%+v", s)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "not recorded: flags of v1.38.0-beta.0") || !strings.Contains(notes, "No rehearsal") {
		t.Errorf("the notes are:\n%s", notes)
	}
}

// The comparison is by harm: the same defect is not a harm that comes and one that remains.
func TestComparisonByHarm(t *testing.T) {
	for _, flags := range flagSets[:3] {
		changes := strings.Join(planOf(t, "v1.36.3", "v1.37.1", flags).Comparison, "\n")
		if !regexp.MustCompile(`^disappears: .*\nremains for a time: .*\nremains: .*21, 46.*\ncomes: .*$`).MatchString(changes) {
			t.Errorf("%+v: with any proxy there are findings 21 and 46:\n%s", flags, changes)
		}
	}
}

// By the documents alone, everything that a plan lists as appearing is in TO's document and not in
// FROM's, and the reverse for everything that vanishes. The plan omits nothing.
func TestWhatDiffersIsInOneDocumentOnly(t *testing.T) {
	lists := func(v *recorded.Version, r reports.PlanResource) bool {
		found := v.Find(r.GVR)
		return found != nil && (r.Subresource == "" || slices.ContainsFunc(found.Subresources, func(s history.Subresource) bool { return s.Name == r.Subresource }))
	}
	for i, from := range recorded.Names() {
		for _, to := range recorded.Names()[i:] {
			older, newer, err := Find(from, to)
			if err != nil {
				t.Fatal(err)
			}
			p := planOf(t, from, to, Flags{})
			for _, side := range []struct {
				all        []reports.PlanResource
				has, lacks recorded.Recording
			}{{p.Appears, newer, older}, {p.Vanishes, older, newer}} {
				names := map[string]bool{}
				for _, r := range side.all {
					names[r.Name()] = true
					has, lacks := side.has.All, side.lacks.All
					if r.On == reports.PlanByDefault {
						has, lacks = side.has.Default, side.lacks.Default
					}
					if !lists(has, r) || lists(lacks, r) {
						t.Errorf("%s → %s: %s (%s) is not in exactly one document", from, to, r.Name(), r.On)
					}
				}
				for _, r := range side.has.All.Document.Resources {
					one := reports.PlanResource{GVR: r.GVR}
					if !lists(side.lacks.All, one) && !names[one.Name()] {
						t.Errorf("%s → %s: %s is missing", from, to, one.Name())
					}
				}
			}
		}
	}
}

// Every resource that differs between two releases has users, or is known to have none.
func TestUsersAreCurated(t *testing.T) {
	without := []string{
		"flowcontrol.apiserver.k8s.io prioritylevelconfigurations",
		"resource.k8s.io podschedulingcontexts", "resource.k8s.io resourceclaimparameters", "resource.k8s.io resourceclasses", "resource.k8s.io resourceclassparameters",
	}
	names := recorded.Names()
	for i := 1; i < len(names); i++ {
		p := planOf(t, names[i-1], names[i], Flags{})
		for _, r := range slices.Concat(p.Appears, p.Vanishes) {
			if len(r.Users) == 0 && !slices.Contains(without, r.Group+" "+r.Resource) {
				t.Errorf("nobody uses %s", r.Name())
			}
			for _, u := range r.Users {
				if u.Who == "" || u.Does == "" || u.Source == "" {
					t.Errorf("%s: user %+v", r.Name(), u)
				}
			}
		}
	}
}

// A plan for two patches that serve the same, or for a change of flags, names no harm, and asks for
// no freeze.
func TestVersionsThatServeTheSame(t *testing.T) {
	for _, to := range []string{"v1.36.3", "v1.36.5"} {
		for _, flags := range []Flags{{}, with(gateOn, peerCA)} {
			p := planOf(t, "v1.36.3", to, flags)
			var text bytes.Buffer
			if err := reports.WritePlanText(&text, p); err != nil || len(p.Harms) > 0 || regexp.MustCompile("reeze|finding 22").MatchString(text.String()) ||
				!strings.Contains(text.String(), "Nothing to protect: No server lacks what another one serves.") {
				t.Errorf("%+v, error %v:\n%s", flags, err, &text)
			}
			for _, f := range p.Findings {
				if f.Harms {
					t.Errorf("finding %d applies, although no server lacks anything", f.Number)
				}
			}
		}
	}
}

// narrow is a terminal of 60 columns.
type narrow struct{ bytes.Buffer }

func (*narrow) Columns() int { return 60 }

// Texts fit the terminal, except for commands, which are to be copied.
func TestTextsFitTheTerminal(t *testing.T) {
	var b narrow
	err := errors.Join(reports.WritePlanText(&b, planOf(t, "v1.36.3", "v1.37.1", Flags{})), reports.WriteFindings(&b, findings.All()),
		reports.WriteFinding(&b, findings.All()[0]), reports.WriteExplanation(&b, reports.Explanation{MustHold: strings.Repeat("word ", 30)}))
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "       ") && len([]rune(line)) > 61 && len(strings.Fields(line)) > 2 {
			t.Errorf("error %v, %d columns: %s", err, len([]rune(line))-1, line)
		}
	}
}

// The page begins with what the flags decide.
func TestThePageBeginsWithTheDecision(t *testing.T) {
	for _, c := range []struct {
		to, gates, authority, want string
	}{
		{"v1.37.1", "Nosuch=true", "", `fail.*<p class="outcome">Does not start</p>`},
		{"v1.37.1", "", "", `known.*<p class="outcome">Not protected</p>`},
		{"v1.37.1", gateOn, peerCA, `known.*<p class="outcome">Protected</p>`},
		{"v1.36.5", "", "", `pass.*<p class="outcome">Nothing to protect</p>`},
	} {
		var page bytes.Buffer
		err := reports.WritePlanHTML(&page, planOf(t, "v1.36.3", c.to, with(c.gates, c.authority)))
		if err != nil || !regexp.MustCompile(`(?s)<section class="verdict `+c.want+`.*What can do harm`).Match(page.Bytes()) {
			t.Errorf("to %s with %s %s: the page does not begin with %s, error %v", c.to, c.gates, c.authority, c.want, err)
		}
	}
}

func TestWrongVersions(t *testing.T) {
	for _, c := range [][3]string{
		{"v1.37.1", "v1.36.3", "--to v1.36.3 is older than --from v1.37.1"},
		{"v1.36.3", "v1.99.0", "--to v1.99.0: it is not recorded what this release serves; recorded are v1.30.14, v1.34.4"},
		{"v1.36.3", "v1.99.0", "record it with 'skewproof plan --record v1.99.0'"},
		{"v1.36.3", "v1.99", "--to v1.99: it is not recorded"},
		{"1.36.3", "v1.37.1", `--from version "1.36.3": want one like v1.37.1`},
		{"v1.36.3", "../../etc", `--to version "../../etc"`},
	} {
		_, _, err := Find(c[0], c[1])
		if c[1] == "v1.99" && strings.Contains(err.Error(), "--record") {
			t.Errorf("%v: --record refuses this version", err)
		}
		if err == nil || !strings.Contains(err.Error(), c[2]) || run.KindOf(err) != run.KindUsage {
			t.Errorf("%s → %s: error %v, want %q", c[0], c[1], err, c[2])
		}
	}
}

// Protection follows from flags and versions.
func TestProtection(t *testing.T) {
	both := with(gateOn, peerCA)
	for _, c := range []struct {
		from, to string
		flags    Flags
		want     [2]bool
		says     string
	}{
		{"v1.36.3", "v1.37.1", Flags{}, [2]bool{}, "no server passes requests on"},            // kubeadm's defaults
		{"v1.36.3", "v1.37.1", with(gateOn, ""), [2]bool{}, "no server"},                      // no authority
		{"v1.36.3", "v1.37.1", with("", peerCA), [2]bool{true, true}, "in both directions"},   // on by default
		{"v1.35.4", "v1.36.3", Flags{}, [2]bool{}, "no server"},                               // off at the old side
		{"v1.35.4", "v1.36.3", with("", peerCA), [2]bool{}, "not every server starts"},        // refused by validation
		{"v1.35.4", "v1.36.3", both, [2]bool{true, true}, "in both directions"},               //
		{"v1.34.4", "v1.35.4", both, [2]bool{true, true}, "in both directions"},               // not merged at the old side
		{"v1.30.14", "v1.34.4", both, [2]bool{}, "v1.30.14: kube-apiserver refuses to start"}, // two designs
		{"v1.36.3", "v1.37.1", with(scenario.Gate+"=false", ""), [2]bool{}, "no server"},      // switched off
	} {
		got := protection(c.from, c.to, "", c.flags)
		if [2]bool{got.Ways[0].Protected, got.Ways[1].Protected} != c.want || !strings.Contains(got.Sentence, c.says) {
			t.Errorf("%s → %s with %+v: %+v, want %v, %q", c.from, c.to, c.flags, got, c.want, c.says)
		}
		for _, s := range []reports.PlanSide{got.Old, got.New} {
			if !s.PassesOn && s.Why == "" {
				t.Errorf("%s → %s with %+v: the plan does not say why %s does not pass requests on", c.from, c.to, c.flags, s.Version)
			}
		}
	}
	old := protection("v1.34.4", "v1.35.4", "", both).Old
	if old.Merges || !strings.Contains(old.Why, "v1.35") {
		t.Errorf("v1.34 merges discovery: %+v", old)
	}
}

// Findings apply by version, by the effect of the proxy, and by what differs.
func TestFindingsThatApply(t *testing.T) {
	on := with(gateOn, peerCA)
	delayed := func(f Flags, by string) Flags {
		return f.With("shutdown-delay-duration", by)
	}
	for _, c := range []struct {
		from, to string
		flags    Flags
		with     []int
		without  []int
	}{
		{"v1.36.3", "v1.37.1", Flags{}, []int{12, 21}, []int{1, 2, 5, 13, 14, 25}},
		{"v1.36.3", "v1.37.1", on, []int{1, 2, 6, 13, 25}, []int{5, 8, 12, 14, 19, 44}},
		{"v1.36.3", "v1.37.1", delayed(on, "20s"), []int{1, 44}, nil},
		{"v1.36.3", "v1.37.1", delayed(on, "0s"), []int{1}, []int{44}},
		{"v1.36.3", "v1.37.1", delayed(Flags{}, "20s"), []int{12}, []int{44}}, // no proxy passes requests on
		{"v1.35.4", "v1.36.3", on, []int{1, 6}, []int{2, 5, 12}},              // no subresource differs
		{"v1.34.4", "v1.35.4", on, []int{5, 8}, []int{12, 19}},
	} {
		p := planOf(t, c.from, c.to, c.flags)
		has := func(n int) bool {
			return slices.ContainsFunc(p.Findings, func(f reports.PlanFinding) bool { return f.Number == n && f.Flags == reports.PlanYourFlags })
		}
		for _, n := range c.with {
			if !has(n) {
				t.Errorf("%s → %s with %+v: finding %d does not apply", c.from, c.to, c.flags, n)
			}
		}
		for _, n := range c.without {
			if has(n) {
				t.Errorf("%s → %s with %+v: finding %d applies", c.from, c.to, c.flags, n)
			}
		}
	}
}

// An operator who follows the checklist meets other defects than without it.
func TestFindingsAfterTheChecklist(t *testing.T) {
	for _, f := range planOf(t, "v1.36.3", "v1.37.1", Flags{}).Findings {
		if want := f.Number != 12 && f.Number != 21 && f.Number != 43 && f.Number != 46 && f.Number != 47; (f.Flags == reports.PlanProxyOn) != want {
			t.Errorf("finding %d applies %s", f.Number, f.Flags)
		}
	}
	for _, f := range planOf(t, "v1.34.4", "v1.35.4", Flags{}).Findings {
		if f.Flags == reports.PlanProxyOn {
			t.Errorf("finding %d applies %s, and the checklist leaves the proxy of v1.34 off", f.Number, f.Flags)
		}
	}
}

// clusterConfiguration is the part of kubeadm's v1beta4 ClusterConfiguration that a plan may use.
// Source: k8s.io/kubernetes cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go.
type clusterConfiguration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	APIServer  struct {
		ExtraArgs []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"extraArgs"`
	} `json:"apiServer"`
}

// The lines for kubeadm are in the form of v1beta4, and with them the pair is protected.
func TestKubeadmsLinesProtect(t *testing.T) {
	files := 0
	for _, pair := range [][2]string{{"v1.36.3", "v1.37.1"}, {"v1.35.4", "v1.36.3"}, {"v1.34.4", "v1.35.4"}, {"v1.30.14", "v1.34.4"}} {
		for _, step := range planOf(t, pair[0], pair[1], Flags{}).Checklist {
			if step.File == "" {
				continue
			}
			files++
			var c clusterConfiguration
			if err := yaml.UnmarshalStrict([]byte(step.File), &c); err != nil {
				t.Fatalf("%v in\n%s", err, step.File)
			}
			if c.APIVersion != "kubeadm.k8s.io/v1beta4" || c.Kind != "ClusterConfiguration" {
				t.Errorf("it is %s, %s", c.APIVersion, c.Kind)
			}
			var flags Flags
			for _, a := range c.APIServer.ExtraArgs {
				if !slices.Contains([]string{history.FeatureGates, gates.PeerCAFile, gates.UIDHeaders}, a.Name) {
					t.Errorf("%v: --%s is not about peers", pair, a.Name)
				}
				flags = flags.With(a.Name, a.Value)
			}
			if got := protection(pair[0], pair[1], "", flags); !got.Ways[0].Protected || !got.Ways[1].Protected {
				t.Errorf("%v: with the lines of the plan: %s\n%s", pair, got.Sentence, step.File)
			}
		}
	}
	if files != 2 { // v1.34 crashes with the feature on, and designs do not mix
		t.Errorf("%d plans have lines for kubeadm, want 2", files)
	}
	for _, step := range planOf(t, "v1.36.3", "v1.37.1", with("", peerCA)).Checklist {
		if step.File != "" {
			t.Errorf("a protected pair is to be protected again:\n%s", step.File)
		}
	}
}

// A node keeps its address, its port and its patches, whatever its default route is.
func TestKubeadmsFileIsThatOfTheNode(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"kube-apiserver.yaml": "  annotations:\n    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.7:6443\n" +
			"    - kube-apiserver\n    - --advertise-address=10.0.0.7\n    - --peer-ca-file=/a\n    - --secure-port=6444\n",
		"kubectl": "#!/bin/sh\nprintf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n'\n",
		"kubeadm": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-ec", strings.ReplaceAll(strings.Join(kubeadmFile[1:], "\n"), "/etc/kubernetes/manifests", dir))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(filepath.Join(dir, "kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	node, cluster, _ := strings.Cut(string(file), "\n---\n")
	// Source: k8s.io/kubernetes cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go, InitConfiguration.
	var c struct {
		APIVersion, Kind string
		LocalAPIEndpoint struct {
			AdvertiseAddress string
			BindPort         int
		}
		Patches struct{ Directory string }
	}
	if err := yaml.UnmarshalStrict([]byte(node), &c); err != nil || c.LocalAPIEndpoint.AdvertiseAddress != "10.0.0.7" ||
		c.LocalAPIEndpoint.BindPort != 6444 || c.Patches.Directory != "/etc/kubernetes/patches" || !strings.Contains(cluster, "kind: ClusterConfiguration") {
		t.Errorf("%v, %+v in\n%s", err, c, file)
	}
}

// The lines that a plan adds fit the flags that the servers have.
func TestLinesFitTheFlags(t *testing.T) {
	const uid = "requestheader-uid-headers=X-Remote-Uid"
	for _, c := range []struct{ from, to, gates, want string }{
		{"v1.36.3", "v1.37.1", "", uid},
		{"v1.36.3", "v1.37.1", "RemoteRequestHeaderUID=false", ""},
		{"v1.36.3", "v1.37.1", "kube:RemoteRequestHeaderUID=False", ""},
		{"v1.36.3", "v1.37.1", "AllBeta=false,RemoteRequestHeaderUID=true,UnknownVersionInteroperabilityProxy=false",
			uid + " feature-gates=APIServerIdentity=true,AllBeta=false,RemoteRequestHeaderUID=true," + gateOn},
		{"v1.36.3", "v1.37.1", "APIServerIdentity=false", uid + " feature-gates=APIServerIdentity=true," + gateOn},
		{"v1.35.4", "v1.36.3", "", uid + " feature-gates=" + gateOn},
		{"v1.35.4", "v1.36.3", "kube:WatchList=true, kube:AllBeta=false", "feature-gates=kube:APIServerIdentity=true,kube:AllBeta=false,kube:" + gateOn + ",kube:WatchList=true"},
	} {
		flags := with(c.gates, "")
		var got []string
		for _, a := range flags.lacking(c.from, protection(c.from, c.to, "", flags)) {
			got = append(got, a[0]+"="+a[1])
		}
		if p := protection(c.from, c.to, "", flags.protecting(protection(c.from, c.to, "", flags))); !p.Old.PassesOn || !p.New.PassesOn {
			t.Errorf("%s → %s with %q: these lines do not protect: %s", c.from, c.to, c.gates, p.Sentence)
		}
		if want := strings.TrimSpace(c.want + " peer-ca-file=" + peerCA); strings.Join(got, " ") != want {
			t.Errorf("%s → %s with %q: %q, want %q", c.from, c.to, c.gates, got, want)
		}
	}
	ssl := Flags{}.With("proxy-client-cert-file", "/etc/kubernetes/ssl/front-proxy-client.crt")
	if got := ssl.lacking("v1.36.3", protection("v1.36.3", "v1.37.1", "", ssl)); got[1][1] != "/etc/kubernetes/ssl/ca.crt" {
		t.Errorf("with another directory of certificates: %q", got)
	}
}

// Whatever the versions and flags, 'skewproof run' accepts each run of the rehearsal, and none is
// slow. There is none for servers that do not start, for one version, and for two designs.
func TestTheRehearsalCanBeRun(t *testing.T) {
	for _, c := range []struct {
		from, to string
		flags    Flags
		want     string
	}{
		{"v1.36.3", "v1.37.1", Flags{}, "kubeadm-defaults rolling-upgrade"},
		{"v1.36.3", "v1.37.1", with("WatchList=false", peerCA), "rolling-upgrade"},
		{"v1.35.4", "v1.36.3", with("", peerCA), ""},
		{"v1.30.14", "v1.34.4", Flags{}, ""},
		{"v1.37.1", "v1.38.0-beta.0", Flags{}, ""}, // cannot be built
	} {
		older, newer, err := Find(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		p, specs := Make(Options{From: older, To: newer, Flags: c.flags})
		var names []string
		for i, spec := range specs {
			names = append(names, spec.Scenario)
			if _, err := spec.Plan(); err != nil || p.Rehearsal[i].Command != spec.Command() || !strings.Contains(spec.Command(), "--from "+c.from+" --to "+c.to) {
				t.Errorf("%s: %v", spec.Command(), err)
			}
			if gates := c.flags.joined(history.FeatureGates); gates != "" && !strings.Contains(spec.Command(), gates) {
				t.Errorf("%s is without %s", spec.Command(), gates)
			}
		}
		if len(names) > mostScenarios || !strings.HasPrefix(strings.Join(names, " "), c.want) || c.want == "" && len(names) > 0 {
			t.Errorf("%s → %s with %+v: %q, want %q first", c.from, c.to, c.flags, names, c.want)
		}
	}
}

// The servers of a rehearsal have every flag that 'skewproof run' accepts. The plan names the
// others, with the reason, except those that kubeadm gives.
func TestTheRehearsalHasTheFlags(t *testing.T) {
	file := []gates.Set{
		{Name: "etcd-servers", Value: "https://10.0.0.1:2379"}, {Name: "advertise-address", Value: "10.0.0.1", From: gates.FromKubeadm},
		{Name: "proxy-client-cert-file", Value: "/a.crt", From: gates.FromKubeadm}, {Name: "proxy-client-key-file", Value: "/a.key", From: gates.FromKubeadm},
		{Name: "goaway-chance", Value: "0.001"}, {Name: "profiling", Bare: true}, {Name: "encryption-provider-config", Value: "/etc/kubernetes/e.yaml"},
		{Name: "external-hostname", Value: "$(HOST)"}, {Name: history.FeatureGates, Value: "kube:WatchList=f,kube:" + gateOn},
	}
	p := planOf(t, "v1.36.3", "v1.37.1", Flags{Set: file}.With(gates.PeerCAFile, peerCA))
	notes := strings.Join(p.Lacks, "\n")
	for _, want := range []string{"`--etcd-servers`. Reason: the run cannot give servers this value, because the run starts its own etcd",
		"`--encryption-provider-config`, `--peer-ca-file`. Reason: this is a file of a node.", "`--external-hostname`. Reason: the value of the variable"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "advertise-address") {
		t.Errorf("kubeadm gives --advertise-address:\n%s", notes)
	}
	if len(p.Rehearsal) < 2 {
		t.Fatalf("%d scenarios", len(p.Rehearsal))
	}
	for _, s := range p.Rehearsal {
		for _, want := range []string{"goaway-chance=0.001", "profiling", "feature-gates=WatchList=false"} {
			if !strings.Contains(s.Command, "--kube-apiserver-flag "+want) {
				t.Errorf("%s lacks %s", s.Command, want)
			}
		}
	}
}

// docs/operators.md, which is written by hand, shows the beginning of a real plan.
func TestOperatorsPageShowsARealPlan(t *testing.T) {
	var b bytes.Buffer
	if err := reports.WritePlanText(&b, planOf(t, "v1.36.3", "v1.37.1", Flags{})); err != nil {
		t.Fatal(err)
	}
	excerpt, _, ok := strings.Cut(b.String(), "\nWHAT TO DO")
	if !ok {
		t.Fatal("the plan has no part about what to do")
	}
	const path, begin, end = "../../docs/operators.md", "```text\n", "\n```\n"
	page, err := os.ReadFile(path)
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if err != nil || !found || !closed {
		t.Fatalf("%s has no block of text, error %v", path, err)
	}
	golden.Hold(t, path, before+begin+strings.TrimSpace(excerpt)+end+after)
}
