package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
)

// The error about a wrong command line leads to the right one. No command line here would start
// anything, even if it were accepted.
func TestWrongUsageIsSaidPlainly(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ line, says string }{
		{"run quiet --kubeconfig kubeconfig --dry-run", "--kubeconfig is for --backend existing; give that too"},
		{"run quiet --contexts a,b --backend local --dry-run", "--contexts is for --backend existing; give that too"},
		{"run quiet --backend moon --dry-run", `--backend "moon": want local, kind, sim or existing`},
		{"run quiet --from v1.99.0 --dry-run", "--from v1.99.0 is newer than the default --to v1.37.1: give --to as well"},
		{"run quiet --to v1.35.4 --dry-run", "--to v1.35.4 is older than the default --from v1.36.3: give --from as well"},
		{"run quiet --from v1.37.1 --to v1.36.3 --dry-run", "--to v1.36.3 is older than --from v1.37.1: give the older version as --from"},
		{"run quiet --from v1.32.1 --to v1.34.4 --dry-run", "cannot be mixed with that of later versions"},
		{"run rolling-upgrade --from v1.30.14 --to v1.34.4 --backend sim --dry-run", "or --subject reference"},
		{"run quiet --servers abc --dry-run", `--servers "abc": want a whole number; 'skewproof run --help' shows the flags`},
		{"run quiet --seed -1 --dry-run", `--seed "-1": want a whole number, 0 or more;`},
		{"run quiet --qps fast --dry-run", `--qps "fast": want a number;`},
		{"run quiet --qps 1e-12 --backend sim --dry-run", "--qps 1e-12: want a rate of 0.001 to 100000"},
		{"run quiet --qps NaN --backend sim --dry-run", "--qps NaN: want a rate of 0.001 to 100000"},
		{"run quiet --strict=maybe --dry-run", `--strict "maybe": want true or false;`},
		{"run quiet --no-load --dry-run", "--no-load proves nothing: it is for a cluster that is held; give --keep too"},
		{"run quiet --at 1 --dry-run", "--at says when the cluster is held; give --keep too"},
		{"run quiet --keep --at 9 --dry-run", "--at 9: quiet has the steps 1 to 3, as --dry-run shows; 0 holds the cluster before the first"},
		{"run quiet --keep --at last --dry-run", `--at "last": want a whole number;`},
		{"run quiet --keep --at 1 --backend sim", "--keep means nothing with --backend sim"},
		{"step run", "requires at least 2 arg(s), only received 1; usage: skewproof step DIR ACTION"},
		{"step run restrat b", `unknown action "restrat": did you mean "restart"?`},
		{"step run replace b v1", "v1"},
		{"run quiet --binary foo --dry-run", `--binary "foo": write COMPONENT@VERSION=PATH`},
		{"run quiet --binary kube-apiserver@v1.38.0=/bin/true --dry-run", "no server of this run is that; it has kube-apiserver@v1.36.3, kube-apiserver@v1.37.1, etcd@v3.6.8"},
		{"run quiet --binary etcd@v3.5.0=/bin/true --dry-run", "--binary etcd@v3.5.0=/bin/true: no server of this run is that"},
		{"run quiet --binary kube-apiserver@v1.37.1=nosuch --dry-run", "the binary given for it, nosuch, cannot be used: stat nosuch: no such file or directory"},
		{"run quiet --binary kube-apiserver@v1.37.1=. --dry-run", "it is not a file"},
		{"conformance --binary kube-apiserver@v1.38.0=/bin/true", "no server of this run is that; it has kube-apiserver@v1.36.3"},
		{"conformance --backend sim --binary kube-apiserver@v1.37.1=/bin/true", "--binary means nothing with --backend sim"},
		{"matrix --binary kube-apiserver@v1.38.0=/bin/true", "--binary kube-apiserver@v1.38.0=/bin/true: no pair of versions has it"},
		{"matrix --binary kube-apiserver@v1.37.1=nosuch --pairs v1.36.3..v1.37.1", "stat nosuch: no such file or directory"},
		{"clients --clients kubectl@v1.37.1,kubectl@v1.37.1", "--clients names kubectl@v1.37.1 twice"},
		{"clients --clients latest", `--clients names "latest": write COMPONENT@VERSION, such as kubectl@v1.35.4`},
		{"clients --from v1.37.1", "--from and --to are both v1.37.1"},
		{"clients --binary kube-apiserver@v1.38.0=/bin/true", "no server of this run is that; it has kube-apiserver@v1.36.3"},
		{"run quiet --dry-run --label " + strings.Repeat("x", 201), "--label has 201 bytes"},
		{"run quiet --dry-run --label \x1b[31mred", `--label "\x1b[31mred": want one line of text, without control characters`},
		{"conformance --label \x9b", "want one line of text"},
		{"conformance --controls none", `--controls "none": want each or few;`},
		{"upstream-e2e --path sideways", `--path "sideways": want direct, old or balancer`},
		{"upstream-e2e --path direct --subject builtin", "--subject builtin: on the path direct no server has a proxy"},
		{"upstream-e2e --path direct --direct nosuch", "--direct is for the paths old and balancer"},
		{"upstream-e2e --path direct --direct-only-failed", "--direct-only-failed is for the paths old and balancer"},
		{"upstream-e2e --direct nosuch --direct-only-failed", "--direct and --direct-only-failed exclude each other"},
		{"upstream-e2e --direct nosuch", "--direct: read the results of Kubernetes' tests: open nosuch/upstream-e2e.json: no such file or directory"},
		{"upstream-e2e --focus (", `--focus "(": error parsing regexp: missing closing )`},
		{"upstream-e2e --tests newest", "--tests: "},
		{"upstream-e2e --subject mine", `--subject "mine": the backend local has builtin, reference, none`},
		{"upstream-e2e --to v1.36.3", "--from and --to are both v1.36.3"},
		{"upstream-e2e --from v1.32.1 --to v1.34.4", "cannot be mixed with that of later versions"},
		{"explore --backend moon", `--backend "moon": want sim or local`},
		{"explore --subject reference", "--subject means nothing with --backend sim: the simulator searches a --policy"},
		{"explore --backend local --policy reference", "--policy means nothing with --backend local: real servers have a --subject"},
		{"explore --backend local --versions v1.36.3", "--versions: want at least two different versions"},
		{"explore --backend local --versions v1.36.3,v1.99.0", "v1.99.0"},
		{"explore --backend local --subject mine", `--subject "mine": the backend local has builtin, reference, none`},
		{"explore --backend local --candidates 0", "--candidates 0: want 1 to 1000"},
		{"explore --backend local --repeats -1", "--repeats -1: want 0 or more"},
		{"explore --backend local --shrink-runs -1", "--shrink-runs -1: want 0 or more"},
		{"explore --backend local --servers 0", "--servers 0: a cluster of real servers is kept"},
		{"explore --backend local --servers 64", "--servers 64: campaign needs 0 to 63 on the backend local"},
		{"replay nosuch.json --backend moon", `--backend "moon": want sim, local or kind`},
		{"replay nosuch.json --backend kind --etcd v3.6.8", "--etcd means nothing with --backend kind"},
		{"--nosuch", "'skewproof --help' shows the flags"},
	} {
		_, err := call(t, strings.Fields(c.line)...)
		if code := codeOf(t, err); code != exitUsage || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "wrong usage") {
			t.Errorf("%s: exit code %d, %v; want %d and %q", c.line, code, err, exitUsage, c.says)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("they left %v, error %v", left, err)
	}
}

// Versions of one design can be mixed. Versions of two designs can be mixed if the built-in proxy
// is not tested.
func TestVersionsThatCanBeMixed(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"run quiet --dry-run --from v1.28.1 --to v1.32.1", "run quiet --dry-run --from v1.34.4 --to v1.37.1",
		"run quiet --dry-run --from v1.30.14+without.batch.v1 --to v1.30.14", "run quiet --dry-run --from v1.32.1 --to v1.34.4 --subject reference",
	} {
		if _, err := call(t, strings.Fields(line)...); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestUnknownCommandsAreWrongUsage(t *testing.T) {
	for word, want := range map[string]string{
		"runn":  `unknown command "runn": did you mean run? 'skewproof --help' lists the commands`,
		"dance": `unknown command "dance": 'skewproof --help' lists the commands`,
	} {
		root := newRoot()
		root.SetArgs([]string{word, "quiet", "--backend", "sim"})
		err := root.Execute()
		if err == nil || unknownCommand(root, err).Error() != want {
			t.Errorf("%s: %v, want %s", word, err, want)
		}
		if code := execute([]string{word, "quiet", "--backend", "sim"}); code != exitUsage {
			t.Errorf("%s: exit code %d", word, code)
		}
		if _, err := call(t, "help", word); codeOf(t, err) != exitUsage || err.Error() != want {
			t.Errorf("help %s: exit code %d, %v", word, codeOf(t, err), err)
		}
	}
}

// It is an easy mistake to give a file instead of its directory, because people look at the report
// in the directory.
func TestAFileIsNoRun(t *testing.T) {
	file := t.TempDir() + "/report.html"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"judge", "shell", "report", "step"} {
		words := []string{command, file}
		if command == "step" {
			words = append(words, "list")
		}
		_, err := call(t, words...)
		if code := codeOf(t, err); code != exitNotRun || !strings.Contains(err.Error(), file+" is a file; give the directory that it is in") {
			t.Errorf("%s: exit code %d, %v", command, code, err)
		}
	}
}

func TestTheHelpNamesWhatACommandDoes(t *testing.T) {
	for command, want := range map[string]string{
		"run": "with --backend existing 60 unless it is given", "bench": "_out/bench-BACKEND-SUBJECT-TIME", "explore": "_out/explore-POLICY-TIME",
		"exhaust": "_out/exhaust-POLICY-TIME", "ablate": "_out/ablate-POLICY-TIME", "replay": "$SKEWPROOF_BINARIES",
	} {
		if out, err := call(t, command, "--help"); err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s --help does not say %q, error %v", command, want, err)
		}
	}
}

func TestTheVersionIsThatOfReports(t *testing.T) {
	for _, word := range []string{"--version", "-v"} {
		if out, err := call(t, word); err != nil || out != "skewproof "+run.Version()+" ("+runtime.Version()+")\n" {
			t.Errorf("%s: %q, error %v", word, out, err)
		}
	}
	if out, err := call(t, "help", "run"); err != nil || !strings.Contains(out, "skewproof run NAME") {
		t.Errorf("help run: error %v:\n%s", err, out)
	}
}
