package config

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/gates"
)

// record makes the table's test ask real kube-apiservers, and write their words to real.json:
//
//	go test ./internal/config -run TestTable -record
var record = flag.Bool("record", false, "ask real kube-apiservers")

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// row is a row of testdata/table.yaml, which says what the fields mean.
type row struct {
	Name  string   `json:"name"`
	As    string   `json:"as"`
	Text  string   `json:"text"`
	Error string   `json:"error"`
	Old   decision `json:"v1.36.3"`
	New   decision `json:"v1.37.1"`
	// Late is true if real servers refuse only after they have read their certificates, or only here.
	Late bool `json:"late"`
	Says struct {
		Version   string `json:"version"`
		Kubeadm   string `json:"kubeadm"`
		Notes     string `json:"notes"`
		Unchecked string `json:"unchecked"`
	} `json:"says"`
}

// decision is one word, or reasons.
type decision struct {
	word    string
	reasons []string
}

func (d *decision) UnmarshalJSON(body []byte) error {
	if body[0] == '[' {
		return json.Unmarshal(body, &d.reasons)
	}
	return json.Unmarshal(body, &d.word)
}

func table(t testing.TB) (rows []row) {
	t.Helper()
	body, err := os.ReadFile("testdata/table.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(body, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Read reads the content of one file.
func Read(name string, body []byte, commandLine bool) (File, error) {
	var r reader
	if err := r.read(name, body, commandLine); err != nil {
		return File{}, err
	}
	return r.File, r.finish()
}

const realFile = "testdata/real.json"

func TestTable(t *testing.T) {
	real := map[string]map[string]string{} // the words of each version, by row
	if body, err := os.ReadFile(realFile); err == nil && !*record {
		if err := json.Unmarshal(body, &real); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	rows := table(t)
	for _, row := range rows {
		f, err := Read("a file", []byte(row.Text), row.As != "config")
		if row.Error != "" || err != nil {
			if err == nil || row.Error == "" || !strings.Contains(err.Error(), row.Error) {
				t.Errorf("%s: error %v, want %q", row.Name, err, row.Error)
			}
			refused++
			continue
		}
		if s := row.Says; f.Version != s.Version || f.KubeadmAPI != s.Kubeadm ||
			s.Notes == "" && len(f.Notes) > 0 || !strings.Contains(strings.Join(f.Notes, "\n"), s.Notes) {
			t.Errorf("%s: read %+v, want %+v", row.Name, f, s)
		}
		for version, want := range map[string]decision{"v1.36.3": row.Old, "v1.37.1": row.New} {
			d, err := gates.Decide(version, f.Flags)
			notes := strings.Join(d.Notes, "\n")
			if err != nil || (notes == "") != (row.Says.Unchecked == "") || !strings.Contains(notes, row.Says.Unchecked) {
				t.Fatalf("%s with %s: %v, notes %q", row.Name, version, err, d.Notes)
			}
			got := decision{word: "off"}
			switch {
			case !d.Starts:
				got = decision{reasons: d.Reasons}
				refused++
			case d.Gate(gates.Proxy) && d.Value(gates.PeerCAFile) != "":
				got.word = "on"
			case d.Gate(gates.Proxy):
				got.word = "gate"
			}
			// Of many reasons, a row names some.
			if got.word != want.word || slices.ContainsFunc(want.reasons, func(r string) bool { return !slices.Contains(got.reasons, r) }) {
				t.Errorf("%s with %s: %+v, want %+v", row.Name, version, got, want)
			}
			if row.Late {
				continue
			}
			if *record {
				if real[row.Name] == nil {
					real[row.Name] = map[string]string{}
				}
				real[row.Name][version] = ask(t, version, f.Flags)
			}
			confirm(t, row.Name+" with "+version, d, real[row.Name][version])
		}
	}
	if len(rows) < 60 || refused < 20 {
		t.Errorf("%d rows and %d refusals, want at least 60 and 20", len(rows), refused)
	}
	if *record {
		body, err := json.MarshalIndent(real, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(realFile, append(body, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unusable are the refusals of flags that the rows leave out.
var unusable = regexp.MustCompile("^\\[?(--etcd-servers must be specified|service-account-issuer is a required flag|" +
	"either `--service-account-key-file` or `--service-account-signing-endpoint` must be set|" +
	"--service-account-signing-key-file and --service-account-issuer are required flags|" +
	".*open [^ ]*: no such file or directory)\\]?$")

// confirm compares a decision with the words of a real server.
func confirm(t *testing.T, name string, d gates.Decision, words string) {
	t.Helper()
	if words == "" {
		t.Errorf("%s: %s has no words of a real server; record them", name, realFile)
	}
	left := words
	for i, reason := range d.Reasons {
		if !strings.Contains(words, reason) && !(i > 0 && firstOnly.MatchString(words)) {
			t.Errorf("%s: the reason %q is not in the words of the real server: %s", name, reason, words)
		}
		left = strings.Replace(left, reason, "", 1)
	}
	for part := range strings.SplitSeq(strings.Trim(left, "[]"), ", ") {
		if part = strings.Trim(part, "[] "); part != "" && !unusable.MatchString(part) {
			t.Errorf("%s: the real server refuses for another reason: %q in %s", name, part, words)
		}
	}
}

// firstOnly matches refusals at which a real server ends, whatever else is wrong.
var firstOnly = regexp.MustCompile(`^(unknown (shorthand )?flag|bad flag syntax|invalid argument|unrecognized feature gate)`)

// failed and unparsed match the last line of a kube-apiserver that does not start.
var (
	failed   = regexp.MustCompile(`"command failed" err=("(?:[^"\\]|\\.)*")`)
	unparsed = regexp.MustCompile(`(?m)^Error: (.+)$`)
)

// ask starts a real kube-apiserver with flags, and with certificates that do not exist. It returns
// the reason why it ends.
func ask(t *testing.T, version string, flags []gates.Set) string {
	t.Helper()
	binary, err := (&binaries.Store{}).Get(t.Context(), binaries.KubeAPIServer, version)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"--tls-cert-file=/nonexistent/certificate", "--tls-private-key-file=/nonexistent/key"}
	for _, f := range flags {
		args = append(args, f.String())
	}
	cmd := exec.CommandContext(ctx, binary.Path, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil || ctx.Err() != nil {
		t.Fatalf("kube-apiserver %s %q does not refuse: %v\n%s", version, args, err, &out)
	}
	if found := unparsed.FindStringSubmatch(out.String()); found != nil {
		return found[1]
	}
	found := failed.FindStringSubmatch(out.String())
	if found == nil {
		t.Fatalf("kube-apiserver %s %q does not say why it ends:\n%s", version, args, &out)
	}
	words, err := strconv.Unquote(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// Nothing that people give may end the program, and what was read can be decided about.
func FuzzRead(f *testing.F) {
	for _, row := range table(f) {
		f.Add([]byte(row.Text), row.As != "config")
	}
	f.Fuzz(func(t *testing.T, body []byte, commandLine bool) {
		file, err := Read("a file", body, commandLine)
		if err != nil {
			return
		}
		if file.Kind == "" {
			t.Errorf("%q is of no kind: %+v", body, file)
		}
		d, err := gates.Decide("v1.37.1", file.Flags)
		if err != nil || d.Starts != (len(d.Reasons) == 0) {
			t.Errorf("%q: %+v, error %v", body, d, err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# nothing\n"), limit/8), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		dir:                             "it is a directory",
		filepath.Join(dir, "none.yaml"): "no such file",
		large:                           "is this the right file?",
		"/dev/zero":                     "it is a pipe or a device",
	} {
		_, err := Open([]string{name}, nil, true)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	_, err := Open([]string{Stdin}, bytes.NewReader(bytes.Repeat([]byte("a"), limit+1)), true)
	if err == nil || !strings.Contains(err.Error(), "is this the right file?") {
		t.Errorf("a long standard input: error %v", err)
	}
}

// A configuration may be in several files. In k3s, a later one replaces a list or adds to it.
func TestOpenReadsSeveralFiles(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer: {extraArgs: [{name: v, value: \"2\"}]}\n",
			"apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.0.0.1}\n", "--v=2"},
		{"kube-apiserver-arg: [v=2]\n", "kube-apiserver-arg: [v=3]\n", "--v=3"},
		{"kube-apiserver-arg: [v=2]\n", "kube-apiserver-arg+: [profiling=false]\n", "--v=2 --profiling=false"},
	} {
		dir := t.TempDir()
		names := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}
		for i, text := range []string{c.first, c.second} {
			if err := os.WriteFile(names[i], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Open(names, nil, false)
		var flags []string
		for _, flag := range f.Flags {
			if flag.From != gates.FromKubeadm {
				flags = append(flags, flag.String())
			}
		}
		if err != nil || strings.Join(flags, " ") != c.want {
			t.Errorf("%s%s: %+v, error %v; want %s", c.first, c.second, f, err, c.want)
		}
	}
}

func TestOldAPI(t *testing.T) {
	for _, c := range []struct{ api, version, want string }{
		{"v1beta3", "v1.36.3", ""}, {"v1beta3", "v1.37.1", "`kubeadm config migrate` of v1.36"},
		{"v1beta4", "v1.37.1", ""}, {"v1beta4", "v1.30.14", "which came with v1.31"}, {"", "v1.37.1", ""},
	} {
		if got := (File{KubeadmAPI: c.api}).OldAPI(c.version); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %q, want %q", c.api, c.version, got, c.want)
		}
	}
}

func TestRelease(t *testing.T) {
	known := []string{"v1.30.14", "v1.36.3", "v1.36.5", "v1.37.1"}
	for _, c := range []struct{ version, want, sentence string }{
		{"v1.36.3", "v1.36.3", ""}, {"1.36.3", "v1.36.3", ""},
		{"v1.36.3+k3s1", "v1.36.3", "v1.36.3+k3s1 is a version of a distribution. The plan is for v1.36.3, on which it is based."},
		{"v1.36.3+rke2r1", "v1.36.3", "on which it is based"}, {"v1.36.3-gke.1", "v1.36.3", "on which it is based"},
		{"v1.36.3-rc.1", "v1.36.3", "stands in for it"},
		{"v1.36", "v1.36.5", "v1.36 names no patch. The plan is for v1.36.5."},
		{"v1.37.9", "v1.37.1", "v1.37.9 is not recorded. The nearest recorded patch, v1.37.1, stands in for it."},
		{"v1.36.4", "v1.36.3", "stands in for it"}, {"v1.99.0", "v1.99.0", ""}, {"stable-1.36", "stable-1.36", ""},
	} {
		got, sentence := Release(c.version, known)
		if got != c.want || (sentence == "") != (c.sentence == "") || !strings.Contains(sentence, c.sentence) {
			t.Errorf("%s: %s, %q; want %s, %q", c.version, got, sentence, c.want, c.sentence)
		}
	}
}
