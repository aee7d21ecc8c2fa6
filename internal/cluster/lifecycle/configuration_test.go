package lifecycle

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

func TestConfigured(t *testing.T) {
	const on, off = "--feature-gates=" + scenario.Gate + "=true", "--feature-gates=Other=true," + scenario.Gate + "=false"
	own := []string{"--peer-ca-file=/keys/ca.crt", "--peer-advertise-ip=198.19.0.1", "--peer-advertise-port=6443", "--advertise-address=198.19.0.2", "--secure-port=6444"}
	for name, c := range map[string]struct {
		version   string
		setup     *scenario.Setup
		apiserver []string
		want      history.Configuration
	}{
		"switched on": {"v1.36.3", nil, append(own, on), history.Configuration{
			Proxy: history.ProxyOwn, PeerCA: "ca.crt", PeerIP: "198.19.0.1", PeerPort: "6443", AdvertiseIP: "198.19.0.2", Port: "6444",
		}},
		"switched off":                      {"v1.36.3", &scenario.Setup{Proxy: scenario.Off}, []string{off}, history.Configuration{Proxy: history.ProxyOff, Setup: "its proxy switched off"}},
		"without a flag, on by default":     {"v1.36.3", nil, nil, history.Configuration{Proxy: history.ProxyOwn}},
		"without a flag, off by default":    {"v1.35.4", nil, nil, history.Configuration{Proxy: history.ProxyOff}},
		"with the default that it emulates": {"v1.36.3", nil, []string{"--emulated-version=1.35"}, history.Configuration{Proxy: history.ProxyOff, Emulates: "1.35"}},
		"without some group versions": {"v1.30.14", nil, []string{off, "--runtime-config=api/all=true", "--runtime-config=batch/v1=false,apps/v1=false"}, history.Configuration{
			Proxy: history.ProxyOff, Without: []string{"apps/v1", "batch/v1"},
		}},
		"with values as kube-apiserver reads them": {"v1.37.1", nil, []string{"--emulated-version=kube=v1.36",
			"--feature-gates=kube:Other=T, kube:" + scenario.Gate + "=0", "--runtime-config=api/all=true,batch/v1", "--runtime-config=apps/v1=False, /v1=0"},
			history.Configuration{Proxy: history.ProxyOff, Emulates: "1.36", Without: []string{"/v1", "apps/v1"}}},
		"with the host name of another": {"v1.30.14", &scenario.Setup{HostnameOf: "b"}, []string{off}, history.Configuration{
			Proxy: history.ProxyOff, Setup: "with the host name of b", SharesHost: "b",
		}},
	} {
		if diff := cmp.Diff(c.want, Configured(c.version, c.setup, c.apiserver)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProxyOn(t *testing.T) {
	const gate = scenario.Gate
	for _, c := range []struct {
		behaves, gates string
		want           bool
	}{
		{"v1.37.1", "", true}, {"v1.38.0-beta.0", "", true}, {"1.35", "", false}, {"v1.27.16", gate + "=true", false},
		{"v1.35.4", gate + "=True", true}, {"v1.35.4", "kube:" + gate + "=1", true}, {"v1.37.1", "A=true, " + gate + " = f", false},
		{"v1.37.1", gate + "=true," + gate + "=false", false}, {"v1.37.1", "kube:" + gate + "=true," + gate + "=true", false},
		{"v1.37.1", "AllBeta=false", false}, {"v1.37.1", "AllAlpha=false", true}, {"v1.35.4", "AllAlpha=true", true}, {"v1.35.4", "AllBeta=true", false},
		{"v1.37.1", "AllBeta=false," + gate + "=true", true}, {"v1.35.4", gate + "=false,AllAlpha=true", false}, {"v1.30.14+without.batch.v1", gate + "=true", true},
	} {
		if got := Configured(c.behaves, nil, []string{"--feature-gates=" + c.gates}).Proxy == history.ProxyOwn; got != c.want {
			t.Errorf("%s with %q: the proxy is on: %t, want %t", c.behaves, c.gates, got, c.want)
		}
	}
}

// The flags are recorded before a process has done anything, also if it never becomes ready.
func TestTheFlagsOfEveryProcessAreRecorded(t *testing.T) {
	s, r, b := started(t, "exit 3")
	b.program.Args = []string{"--peer-advertise-port=1", "--emulated-version=1.36"}
	s.Configure(&scenario.Setup{Advertise: scenario.AdvertisePort})
	if err := s.Start(context.Background(), "v1.36.3"); err == nil {
		t.Error("it started")
	}
	want := []history.Configuration{{
		Server: "a", Incarnation: 1, At: r.Now(), Setup: "advertising a port and no address", Proxy: history.ProxyOwn, PeerPort: "1",
		Emulates: "1.36",
	}}
	if len(r.entries) == 0 || r.entries[0].Emulates != "1.36" {
		t.Errorf("the process starts as %+v, want an emulated version", r.entries)
	}
	if diff := cmp.Diff(want, r.flags); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}
