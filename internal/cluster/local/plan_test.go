package local

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

var testFiles = Files{Keys: "keys", Data: "data", Logs: "logs"}

func TestPlacesShareNoAddress(t *testing.T) {
	var servers []history.Server
	for i := range MaxServers {
		servers = append(servers, history.Server{Name: fmt.Sprintf("s%d", i)})
	}
	benchmarking := netip.MustParsePrefix("198.18.0.0/15") // RFC 2544
	seen := map[netip.Addr]string{etcdAdvertised.Addr(): "etcd"}
	for _, p := range Places(servers) {
		for what, a := range map[string]netip.Addr{"advertised": p.Advertised.Addr(), "real": p.Real.Addr(), "gateway": p.Cable.Addr().Next()} {
			if !benchmarking.Contains(a) {
				t.Errorf("%s address of %s, %s, is outside %s", what, p.Name, a, benchmarking)
			}
			if other, taken := seen[a]; taken {
				t.Errorf("%s address of %s, %s, belongs to %s already", what, p.Name, a, other)
			}
			seen[a] = p.Name
		}
		if !p.Cable.Contains(p.Real.Addr()) || p.Cable.Masked() != p.Cable {
			t.Errorf("%s: real address %s, cable %s", p.Name, p.Real, p.Cable)
		}
	}
}

// The identities were read off real servers v1.36.3 and v1.37.1 on hosts of these names.
func TestPlaceKnowsTheIdentityThatTheServerWillTake(t *testing.T) {
	for name, want := range map[string]string{
		"a": "apiserver-2tpgmlbwcz6wvzejdfn7mej2p4",
		"b": "apiserver-jnrjmwo4ppicmwnfyxmuk5l5mi",
	} {
		if got := place(0, name).ID; got != want {
			t.Errorf("identity on host %q is %q, want %q", name, got, want)
		}
	}
}

func flag(args []string, name string) (string, bool) {
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func TestAPIServerArguments(t *testing.T) {
	p := place(1, "b")
	for name, c := range map[string]struct {
		version, subject string
		want             map[string]string // flag → value; "-" means absent
	}{
		"builtin names itself to its peers": {"v1.37.1", SubjectBuiltin, map[string]string{
			"feature-gates": Gate + "=true", "peer-ca-file": "keys/ca.crt", "peer-advertise-ip": "198.19.0.2", "peer-advertise-port": "6443",
			"requestheader-uid-headers": "X-Remote-Uid",
		}},
		"builtin works before the gate was on by default": {"v1.34.4", SubjectBuiltin, map[string]string{"feature-gates": Gate + "=true"}},
		"none switches off what is on by default":         {"v1.37.1", SubjectNone, map[string]string{"feature-gates": Gate + "=false", "peer-ca-file": "-", "peer-advertise-ip": "-"}},
		"none before there was a gate":                    {"v1.27.16", SubjectNone, map[string]string{"feature-gates": "-", "requestheader-uid-headers": "-"}},
		"every subject gets a front proxy": {"v1.36.3", SubjectNone, map[string]string{
			"proxy-client-cert-file": "keys/front-proxy-client.crt", "requestheader-client-ca-file": "keys/front-proxy-ca.crt",
			"requestheader-allowed-names": "front-proxy-client", "requestheader-username-headers": "X-Remote-User",
		}},
		"addresses and files are the server's own": {"v1.36.3", SubjectBuiltin, map[string]string{
			"advertise-address": "198.19.0.2", "secure-port": "6443", "tls-cert-file": "keys/serving-b.crt", "audit-log-path": "logs/b-audit.jsonl",
			"etcd-servers": "https://198.19.255.1:2379",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := APIServerArguments(c.version, c.subject, p, testFiles)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
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
			again, _ := APIServerArguments(c.version, c.subject, p, testFiles)
			if !slices.Equal(args, again) {
				t.Error("the same question got two answers")
			}
		})
	}
}

func TestAPIServerArgumentsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ version, subject, want string }{
		"a subject the version lacks":      {"v1.33.1", SubjectBuiltin, "older than v1.34"},
		"a subject this backend knows not": {"v1.37.1", "alpha", "knows builtin and none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := APIServerArguments(c.version, c.subject, place(0, "a"), testFiles)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

func TestEtcdTrustsNobodyWithoutACertificate(t *testing.T) {
	args := EtcdArguments(testFiles)
	if v, _ := flag(args, "client-cert-auth"); v != "true" {
		t.Error("etcd takes clients without a certificate")
	}
	if v, _ := flag(args, "listen-client-urls"); v != "https://127.0.0.1:2379" {
		t.Errorf("etcd listens on %s: it must be reachable through its link only", v)
	}
}
