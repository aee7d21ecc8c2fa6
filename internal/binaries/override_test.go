package binaries

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseOverride(t *testing.T) {
	ref, path, err := ParseOverride("kube-apiserver@v1.37.1=/opt/a=b/kube-apiserver")
	if err != nil || ref != (Ref{KubeAPIServer, "v1.37.1"}) || path != "/opt/a=b/kube-apiserver" {
		t.Errorf("got %v, %q, %v", ref, path, err)
	}
	for in, want := range map[string]error{
		"":                        ErrBadRef,
		"/opt/kube-apiserver":     ErrBadRef,
		"kube-apiserver=/opt/x":   ErrBadRef,
		"kube-apiserver@v1.37.1=": ErrBadRef,
		"cloud-controller-manager@v1.37.1=/opt/x": ErrBadRef,
		"etcd@3.6.8=/opt/etcd":                    ErrBadVersion,
	} {
		if _, _, err := ParseOverride(in); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
	}
}

func TestOverridesFromEnv(t *testing.T) {
	o, err := OverridesFromEnv(" kube-apiserver@v1.37.1=/k, etcd@v3.6.8=/e,")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.String(), "etcd@v3.6.8=/e,kube-apiserver@v1.37.1=/k"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if o, err := OverridesFromEnv(""); err != nil || len(o) != 0 {
		t.Errorf("unset: got %v, %v", o, err)
	}
	_, err = OverridesFromEnv("etcd@v3.6.8=/a,etcd@v3.6.8=/b")
	if !errors.Is(err, ErrBadRef) || !strings.Contains(err.Error(), "both /a and /b") {
		t.Errorf("twice: got %v", err)
	}
}

func TestGetOverride(t *testing.T) {
	for _, tc := range []struct {
		name      string
		component Component
		version   string
		text      string
		mode      os.FileMode
		want      string // "": it is used
	}{
		{"as it should be", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.3\n", 0o755, ""},
		{"etcd", Etcd, "v3.6.8", string(script(Etcd, "v3.6.8")), 0o755, ""},
		{"a distribution's build", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.3+k3s1\n", 0o755, ""},
		{"a patched build", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.3-dirty\n", 0o755, ""},
		{"a build after the release", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.4-rc.0.12+8f3c2d1\n", 0o755, ""},
		{"another version", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.30\n", 0o755, `says "Kubernetes v1.36.30", not v1.36.3: it is another release`},
		{"a patched build of another minor", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.37.3-dirty\n", 0o755, "another minor version"},
		{"another program", KubeAPIServer, testVersion, "#!/bin/sh\necho hello\n", 0o755, `says "hello"`},
		{"etcd for kube-apiserver", KubeAPIServer, testVersion, string(script(Etcd, "v3.6.8")), 0o755, "not v1.36.3"},
		{"fails", KubeAPIServer, testVersion, "#!/bin/sh\necho broken >&2; exit 3\n", 0o755, "exit status 3: broken"},
		{"not executable", KubeAPIServer, testVersion, "#!/bin/sh\necho Kubernetes v1.36.3\n", 0o644, "chmod +x"},
		{"not a program", KubeAPIServer, testVersion, "\x7fELF", 0o755, "--version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t, "")
			path := filepath.Join(t.TempDir(), "mine")
			if err := os.WriteFile(path, []byte(tc.text), tc.mode); err != nil {
				t.Fatal(err)
			}
			s.Overrides = Overrides{{tc.component, Version(tc.version)}: path}
			b, err := s.Get(t.Context(), tc.component, tc.version)
			if tc.want != "" {
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("got %v, want it to name %s and %q", err, path, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			says, err := Says(t.Context(), b)
			if b.Path != path || b.Origin != OriginPath || b.Size != int64(len(tc.text)) ||
				b.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(tc.text))) || err != nil || says == "" {
				t.Errorf("got %+v", b)
			}
			checkNothingLeft(t, s.Dir)
		})
	}
}

func TestGetOverrideMissing(t *testing.T) {
	s := newStore(t, "")
	dir := t.TempDir()
	for name, path := range map[string]string{"no file": filepath.Join(dir, "none"), "directory": dir} {
		s.Overrides = Overrides{{KubeAPIServer, testVersion}: path}
		if _, err := s.Get(t.Context(), KubeAPIServer, testVersion); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An override comes before the cache, but only for its own version.
func TestOverrideBeforeCache(t *testing.T) {
	s := newStore(t, "")
	fill(t, s, KubeAPIServer, testVersion)
	fill(t, s, KubeAPIServer, "v1.37.1")
	path := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(path, script(KubeAPIServer, testVersion), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Overrides = Overrides{{KubeAPIServer, testVersion}: path}
	for version, want := range map[string]Origin{testVersion: OriginPath, "v1.37.1": OriginCache} {
		b, err := s.Get(t.Context(), KubeAPIServer, version)
		if err != nil || b.Origin != want {
			t.Errorf("%s: got %+v, %v; want origin %s", version, b, err, want)
		}
	}
}

func TestVersionOutputIsCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := versionOutput(ctx, KubeAPIServer, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
