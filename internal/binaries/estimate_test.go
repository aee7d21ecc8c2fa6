package binaries

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// built puts a binary into the cache as a build would.
func built(t *testing.T, s *Store, ref Ref, seconds float64) {
	t.Helper()
	work, err := newWorkspace(s.Dir, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer work.remove()
	if err := os.WriteFile(work.binary(), script(ref.Component, string(ref.Version)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := writeEntry(s.Dir, ref, work, Binary{Origin: OriginBuild, Seconds: seconds}); err != nil {
		t.Fatal(err)
	}
}

func TestEstimate(t *testing.T) {
	s := newStore(t, "")
	apiserver, etcd, kubelet := Ref{KubeAPIServer, "v1.37.1"}, Ref{Etcd, DefaultEtcd}, Ref{Kubelet, "v1.37.1"}
	expect := func(when string, want map[Ref]time.Duration) {
		t.Helper()
		for ref, d := range want {
			if got := s.Estimate(ref); got != d {
				t.Errorf("%s: %s takes %s, want %s", when, ref, got, d)
			}
		}
	}
	unknown := 6 * time.Minute / time.Duration(runtime.NumCPU())
	expect("an empty cache", map[Ref]time.Duration{apiserver: unknown, etcd: unknown / 10, kubelet: unknown})
	fill(t, s, KubeAPIServer, "v1.35.0")
	expect("a download", map[Ref]time.Duration{apiserver: unknown})
	built(t, s, Ref{KubeAPIServer, testVersion}, 100)
	expect("a build", map[Ref]time.Duration{apiserver: 100 * time.Second, etcd: 10 * time.Second, kubelet: 100 * time.Second})
	built(t, s, Ref{Etcd, "v3.6.1"}, 20)
	expect("a build of etcd", map[Ref]time.Duration{apiserver: 100 * time.Second, etcd: 20 * time.Second})
}
