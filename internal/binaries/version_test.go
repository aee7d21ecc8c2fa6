package binaries

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, tc := range []struct {
		name      string
		component Component
		in        string
		hint      string // "": it is good
	}{
		{"release", KubeAPIServer, "v1.37.1", ""},
		{"pre-release", KubeAPIServer, "v1.38.0-rc.1", ""},
		{"etcd release", Etcd, "v3.6.8", ""},
		{"the default", Etcd, DefaultEtcd, ""},
		{"no v", KubeAPIServer, "1.37.1", `did you mean "v1.37.1"?`},
		{"no v, no patch", KubeAPIServer, "1.37", "write it like v1.37.1"},
		{"no patch", KubeAPIServer, "v1.37", "the patch version is missing"},
		{"major only", KubeAPIServer, "v1", "the patch version is missing"},
		{"a channel", KubeAPIServer, "latest", "write it like v1.37.1"},
		{"empty", KubeAPIServer, "", "write it like v1.37.1"},
		{"leading zero", KubeAPIServer, "v1.037.1", "write it like"},
		{"build metadata", KubeAPIServer, "v1.37.1+k3s1", `releases have no "+k3s1"`},
		{"other major", KubeAPIServer, "v3.6.8", "no releases but v1.x.y"},
		{"kubernetes version for etcd", Etcd, "v1.37.1", "no releases but v3.x.y"},
		{"path", KubeAPIServer, "v1.37.1/../../x", "write it like"},
		{"newline", KubeAPIServer, "v1.37.1\n", "write it like"},
		{"flag", KubeAPIServer, "-v1.37.1", "write it like"},
		{"endless", KubeAPIServer, "v1.37.1-" + strings.Repeat("a", 1000), "more than 64 characters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := ParseVersion(tc.component, tc.in)
			if tc.hint == "" {
				if err != nil || string(v) != tc.in {
					t.Fatalf("got %q, %v", v, err)
				}
				return
			}
			if !errors.Is(err, ErrBadVersion) || !strings.Contains(err.Error(), tc.hint) {
				t.Errorf("got %q, %v; want a bad version and the hint %q", v, err, tc.hint)
			}
		})
	}
}

// Every accepted version becomes a file name, a URL and an argument of a command.
func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{"v1.37.1", "v1.38.0-rc.1", "1.37", "v1.37", "latest", "v1.37.1+x", "v1.2.3/..", "v1.2.3-..", "v1.2.3- -o"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(KubeAPIServer, s)
		if err != nil {
			if !errors.Is(err, ErrBadVersion) {
				t.Fatalf("%q: %v is not ErrBadVersion", s, err)
			}
			return
		}
		if string(v) != s || !filepath.IsLocal(s) || filepath.Base(s) != s || strings.ContainsAny(s, " \t\r\n@=,%?#'\"\\") {
			t.Fatalf("accepted %q", s)
		}
		if major, minor := v.majorMinor(); major != "1" || minor == "" || !strings.HasPrefix(s, "v1."+minor+".") {
			t.Fatalf("%q has major %q and minor %q", s, major, minor)
		}
		if ref, err := ParseRef("kube-apiserver@" + s); err != nil || ref.Version != v {
			t.Fatalf("as part of a reference %q is %v, %v", s, ref, err)
		}
	})
}

func TestParseRef(t *testing.T) {
	if ref, err := ParseRef("etcd@v3.6.8"); err != nil || ref != (Ref{Etcd, "v3.6.8"}) {
		t.Errorf("got %v, %v", ref, err)
	}
	for in, want := range map[string]error{
		"kube-apiserver":                   ErrBadRef,
		"cloud-controller-manager@v1.37.1": ErrBadRef,
		"kube-apiserver@":                  ErrBadVersion,
		"kube-apiserver@1.37":              ErrBadVersion,
		"etcd@v3.6.8@v3.6.9":               ErrBadVersion,
		"../kube-apiserver@v1.1":           ErrBadRef,
	} {
		if _, err := ParseRef(in); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
	}
}
