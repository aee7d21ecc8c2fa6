package existing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/skewproof/skewproof/internal/pki"
)

// authority returns a new CA with that name, in PEM.
func authority(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := pki.NewAuthority(dir, name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name+".crt")
}

// kubeconfig has the contexts a, b and c, each with a cluster and a user of the same name. replace
// holds pairs of an old and a new text.
func kubeconfig(t *testing.T, replace ...string) string {
	t.Helper()
	ca := authority(t, "ca")
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Config\nclusters:\n")
	for i, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "- name: %s\n  cluster: {server: 'https://127.0.0.%d:6443', certificate-authority: %s}\n", name, i+1, ca)
	}
	b.WriteString("users:\n")
	for _, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "- name: %s\n  user: {token: secret}\n", name)
	}
	b.WriteString("contexts:\n")
	for _, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "- name: %s\n  context: {cluster: %s, user: %s}\n", name, name, name)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := strings.NewReplacer(replace...).Replace(b.String())
	if len(replace) > 0 && content == b.String() {
		t.Fatal("no text was replaced, so this test would prove nothing")
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEndpoints(t *testing.T) {
	for contexts, want := range map[string]string{"": "a1 b2 c3", "c b": "c3 b2"} {
		endpoints, err := Endpoints(kubeconfig(t), strings.Fields(contexts))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range endpoints {
			got = append(got, e.Name+strings.TrimSuffix(strings.TrimPrefix(e.Config.Host, "https://127.0.0."), ":6443"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", contexts, got, want)
		}
	}
}

// A list of files forms one configuration, as for kubectl.
func TestEndpointsOfSeveralFiles(t *testing.T) {
	first := kubeconfig(t)
	whole, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second")
	for file, without := range map[string]string{
		first: "- name: c\n  context: {cluster: c, user: c}\n", second: "- name: a\n  context: {cluster: a, user: a}\n",
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(whole), without, "", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	endpoints, err := Endpoints(first+string(os.PathListSeparator)+second, nil)
	if err != nil || len(endpoints) != 3 {
		t.Errorf("%d endpoints, error %v; want 3", len(endpoints), err)
	}
}

// Endpoints must not use any address that the kubeconfig does not name.
func TestNoWayFollowsTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	endpoints, err := Endpoints(kubeconfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range endpoints {
		if w.Config.Proxy == nil {
			t.Fatalf("%s follows the environment", w.Name)
		}
		if u, err := w.Config.Proxy(nil); u != nil || err != nil {
			t.Errorf("%s is dialled through %v, error %v", w.Name, u, err)
		}
	}
}

func TestEndpointsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		replace  []string
		contexts string
		want     string
	}{
		"no such context":       {nil, "a x", `no context "x": it has a, b, c`},
		"no such context alone": {nil, "nope", `no context "nope": it has a, b, c`},
		"no such user":          {[]string{"cluster: b, user: b}", "cluster: b, user: nope}"}, "", `kubeconfig, context "b": there is no user "nope"`},
		"no user of that name":  {[]string{", user: b}", ", user: nope}", ", user: a}", ", user: nope}", ", user: c}", ", user: nope}"}, "", `there is no user "nope"`},
		"one server":            {nil, "a", "two servers at least"},
		"not verified":          {[]string{"6443', certificate-authority:", "6443', insecure-skip-tls-verify: true, x:"}, "", "skips TLS verification"},
		"plain HTTP":            {[]string{"https://127.0.0.3", "http://127.0.0.3"}, "", "not an https URL"},
		"a path":                {[]string{"127.0.0.3:6443", "127.0.0.3:6443/clusters/x"}, "", "has a path"},
		"a query":               {[]string{"127.0.0.3:6443", "127.0.0.3:6443/?a=b"}, "", "has a path"},
		"a user in the URL":     {[]string{"127.0.0.3:6443", "u:secret@127.0.0.3:6443"}, "", "u:xxxxx@127.0.0.3:6443"},
		"no name":               {[]string{"- name: c\n  context", "- name: ''\n  context"}, "", "a context has no name"},
		"through a proxy":       {[]string{"6443', certificate-authority:", "6443', proxy-url: 'http://127.0.0.1:1', certificate-authority:"}, "", "proxy-url"},
		"a CA that is missing":  {[]string{"certificate-authority: /", "certificate-authority: /nosuch/"}, "", "nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Endpoints(kubeconfig(t, c.replace...), strings.Fields(c.contexts))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Endpoints(fifo, nil); !errors.Is(err, ErrUnreadable) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := Endpoints(filepath.Join(t.TempDir(), "nothing"), nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}
