package local

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

func flag(args []string, name string) (string, bool) {
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// hasFlags checks the values of flags, and that no flag is given twice. "-" means that a flag must
// be absent.
func hasFlags(t *testing.T, args []string, wanted map[string]string) {
	t.Helper()
	for name, want := range wanted {
		got, ok := flag(args, name)
		if want == "-" && ok {
			t.Errorf("--%s=%s is there, want it absent", name, got)
		} else if want != "-" && got != want {
			t.Errorf("--%s=%s, want %s", name, got, want)
		}
	}
	seen := map[string]bool{}
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if seen[name] {
			t.Errorf("%s is given twice", name)
		}
		seen[name] = true
	}
}

func TestAPIServerArguments(t *testing.T) {
	for name, c := range map[string]struct {
		version, subject string
		want             map[string]string // flag → value; "-" means absent
	}{
		"builtin names itself to its peers": {"v1.37.1", scenario.SubjectBuiltin, map[string]string{
			"feature-gates": scenario.Gate + "=true", "peer-ca-file": "keys/ca.crt", "peer-advertise-ip": "198.19.0.2", "peer-advertise-port": "6443",
			"requestheader-uid-headers": "X-Remote-Uid",
		}},
		"builtin works before the gate was on by default": {"v1.34.4", scenario.SubjectBuiltin, map[string]string{"feature-gates": scenario.Gate + "=true"}},
		"none switches off what is on by default":         {"v1.37.1", scenario.SubjectNone, map[string]string{"feature-gates": scenario.Gate + "=false", "peer-ca-file": "-", "peer-advertise-ip": "-"}},
		"none before there was a gate":                    {"v1.27.16", scenario.SubjectNone, map[string]string{"feature-gates": "-", "requestheader-uid-headers": "-"}},
		"the reference has the flags of builtin, and its policy": {"v1.37.1", scenario.SubjectReference, map[string]string{
			"feature-gates": scenario.Gate + "=true", "peer-ca-file": "keys/ca.crt", "peer-advertise-ip": "198.19.0.2", "secure-port": "6443",
			"mixed-version-proxy-policy": "reference",
		}},
		"every subject gets a front proxy": {"v1.36.3", scenario.SubjectNone, map[string]string{
			"proxy-client-cert-file": "keys/front-proxy-client.crt", "requestheader-client-ca-file": "keys/front-proxy-ca.crt",
			"requestheader-allowed-names": "front-proxy-client", "requestheader-username-headers": "X-Remote-User",
		}},
		"addresses and files are the server's own": {"v1.36.3", scenario.SubjectBuiltin, map[string]string{
			"advertise-address": "198.19.0.2", "secure-port": "6443", "tls-cert-file": "keys/serving-b.crt", "audit-log-path": "logs/b-audit.jsonl",
			"etcd-servers": "https://198.19.255.1:2379",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(1, "b")
			args, err := APIServerArguments(c.version, c.subject, p, testFiles)
			if err != nil {
				t.Fatal(err)
			}
			hasFlags(t, args, c.want)
			again, _ := APIServerArguments(c.version, c.subject, p, testFiles)
			if !slices.Equal(args, again) {
				t.Error("the same question got two answers")
			}
		})
	}
}

func TestAPIServerArgumentsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ version, subject, want string }{
		"a subject the version lacks":         {"v1.33.1", scenario.SubjectBuiltin, "has no Mixed Version Proxy that can be tested"},
		"a version without a reference proxy": {"v1.29.9", scenario.SubjectReference, "older than v1.30"},
		"a subject this backend knows not":    {"v1.37.1", "alpha", "knows builtin, reference, none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := APIServerArguments(c.version, c.subject, place(0, "a"), testFiles)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

// A plain server has another program than the other servers of the subject reference.
func TestEveryServerHasABinary(t *testing.T) {
	ours, released := map[string]string{"v1.37.1": "/bin/ours"}, map[string]string{"v1.37.1": "/bin/new"}
	plain, off := &scenario.Setup{Plain: true}, &scenario.Setup{Proxy: scenario.Off}
	for _, c := range []struct {
		config  Config
		setup   *scenario.Setup
		version string
		want    string // "" for an error
	}{
		{Config{Subject: scenario.SubjectBuiltin, Programs: Programs{APIServers: released}}, nil, "v1.37.1", "/bin/new"},
		{Config{Subject: scenario.SubjectBuiltin, Programs: Programs{APIServers: released}}, plain, "v1.37.1", "/bin/new"},
		{Config{Subject: scenario.SubjectBuiltin, Programs: Programs{APIServers: released}}, nil, "v1.37.1+without.batch.v1", "/bin/new"},
		{Config{Subject: scenario.SubjectBuiltin, Programs: Programs{APIServers: released}}, nil, "v1.36.3", ""},
		{Config{Subject: scenario.SubjectReference, Programs: Programs{APIServers: ours, Plain: released}}, nil, "v1.37.1", "/bin/ours"},
		{Config{Subject: scenario.SubjectReference, Programs: Programs{APIServers: ours, Plain: released}}, off, "v1.37.1", "/bin/ours"},
		{Config{Subject: scenario.SubjectReference, Programs: Programs{APIServers: ours, Plain: released}}, plain, "v1.37.1", "/bin/new"},
		{Config{Subject: scenario.SubjectReference, Programs: Programs{APIServers: ours}}, plain, "v1.37.1", ""},
	} {
		if got, err := c.config.binary(c.version, c.setup); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, %s, %s: %q, error %v; want %q", c.config.Subject, c.version, c.setup, got, err, c.want)
		}
	}
}

func TestEtcdArguments(t *testing.T) {
	args := EtcdArguments(testFiles)
	if v, _ := flag(args, "client-cert-auth"); v != "true" {
		t.Error("etcd takes clients without a certificate")
	}
	if v, _ := flag(args, "listen-client-urls"); v != "https://127.0.0.1:2379" {
		t.Errorf("etcd listens on %s: it must be reachable through its link only", v)
	}
	if v, _ := flag(args, "watch-progress-notify-interval"); v != "5s" {
		t.Errorf("etcd notifies watches of its progress every %q, and with kubeadm every 5 s", v)
	}
}

// The proxy of 1.28 to 1.32 has needs that no other proxy has. The flags that switch off an API
// come last, after those that apply to all APIs.
func TestAlphaArguments(t *testing.T) {
	p := Places([]history.Server{{Name: "a"}})[0]
	args, err := APIServerArguments("v1.30.14+without.batch.v1", scenario.SubjectBuiltin, p, Files{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "--feature-gates="+scenario.Gate+"=true,StorageVersionAPI=true,APIServerIdentity=true") {
		t.Errorf("the gates of the alpha are not all switched on: %v", args)
	}
	all, without := slices.Index(args, "--runtime-config=api/all=true"), slices.Index(args, "--runtime-config=batch/v1=false")
	if all < 0 || without < all {
		t.Errorf("every API is switched on at %d, batch/v1 off at %d: %v", all, without, args)
	}
	for _, flag := range []string{"--peer-ca-file=", "--peer-advertise-ip=", "--peer-advertise-port="} {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, flag) }) {
			t.Errorf("there is no %s", flag)
		}
	}
}

func TestVersionsBetweenTheDesignsHaveNoProxy(t *testing.T) {
	p := Places([]history.Server{{Name: "a"}})[0]
	for version, refused := range map[string]bool{
		"v1.27.16": true, "v1.28.0": false, "v1.32.9": false, "v1.33.5": true, "v1.34.4": false, "v1.37.1": false,
	} {
		if _, err := APIServerArguments(version, scenario.SubjectBuiltin, p, Files{}); (err != nil) != refused {
			t.Errorf("%s: error %v", version, err)
		}
	}
	if _, err := APIServerArguments("v1.30.14+without.batch", scenario.SubjectNone, p, Files{}); err == nil {
		t.Error("a version that cannot be read is accepted")
	}
}
