package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// APIServerArguments returns the command line of a kube-apiserver, without the program's name. The
// result depends only on its arguments: it touches no file and starts nothing.
func APIServerArguments(version, subject string, p Place, f Files) ([]string, error) {
	subject = lifecycle.Subject(subject, p.Setup)
	args := append(p.advertiseArguments(),
		"--bind-address=0.0.0.0",
		"--secure-port="+strconv.Itoa(int(p.Real.Port())),
		"--tls-cert-file="+f.key(p.serving()+".crt"),
		"--tls-private-key-file="+f.key(p.serving()+".key"),
		"--client-ca-file="+f.key("ca.crt"),
		"--etcd-servers=https://"+etcdAdvertised.String(),
		"--etcd-cafile="+f.key("etcd-ca.crt"),
		"--etcd-certfile="+f.key("etcd-client.crt"),
		"--etcd-keyfile="+f.key("etcd-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+f.key("service-account.pub"),
		"--service-account-signing-key-file="+f.key("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC",
		"--audit-policy-file="+f.auditPolicy(),
		"--audit-log-path="+f.audit(p.Name),
		"--audit-log-maxsize=4096",
	)
	args = append(args, frontProxyArguments(p, f)...)
	// All APIs of a version are on, so that versions differ in both directions. Without betas, a
	// newer server would serve everything that an older one serves.
	if apis := p.Flags.APIs("api/all=true"); apis != "" {
		args = append(args, "--runtime-config="+apis)
	}
	if emulated := p.Setup.Like(); emulated != "" {
		args = append(args, "--emulated-version="+emulated)
	}
	if atLeast(p.featureVersion(version), "v1.34") && !p.kubeadm(subject) {
		args = append(args, "--requestheader-uid-headers=X-Remote-Uid")
	}
	without, err := withoutArguments(version)
	if err != nil {
		return nil, err
	}
	mvp, err := mvpArguments(version, subject, p, f)
	return p.withOwn(slices.Concat(args, without, mvp, p.drainArguments())), err
}

// drainArguments say how the kube-apiserver ends connections, and how long it serves on when it is
// stopped.
func (p Place) drainArguments() (args []string) {
	setup := p.setup()
	if d := setup.ShutdownDelay; d > 0 {
		args = append(args, "--shutdown-delay-duration="+d.String())
	}
	if setup.Goaway == scenario.On {
		args = append(args, "--goaway-chance="+scenario.GoawayChance)
	}
	if d := setup.WatchTermination; d > 0 {
		args = append(args, "--shutdown-watch-termination-grace-period="+d.String())
	}
	return args
}

// PolicyFlag is the flag of a kube-apiserver with the reference proxy that chooses its policy.
const PolicyFlag = "mixed-version-proxy-policy"

// mvpArguments explicitly switch the proxy on or off, so that a run does not change its
// meaning with a default. The default depends on the version, or on the version that a server
// emulates (off up to 1.35). The proxy code is that of the server's own version, whatever the
// server emulates.
func mvpArguments(version, subject string, p Place, f Files) ([]string, error) {
	if p.kubeadm(subject) {
		return nil, nil
	}
	switch subject {
	case scenario.SubjectNone:
		if !atLeast(version, "v1.28") {
			return nil, nil // this version does not have the gate yet
		}
		return []string{"--feature-gates=" + scenario.Gate + "=false"}, nil
	case scenario.SubjectReference:
		if !atLeast(version, binaries.OldestReference) {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s is older than %s, the oldest that can be built with the reference proxy; "+
				"use %[3]s or newer, or subject %[4]s", subject, version, binaries.OldestReference, scenario.SubjectNone)
		}
		gates := scenario.Gate + "=true"
		if isAlpha(version) {
			gates = alphaGates
		}
		policy := []string{"--feature-gates=" + gates, "--" + PolicyFlag + "=" + scenario.SubjectReference}
		return slices.Concat(policy, p.peerCAArguments(f), p.peerAddressArguments()), nil
	case scenario.SubjectBuiltin:
		gates := scenario.Gate + "=true"
		if isAlpha(version) {
			gates = alphaGates
		} else if !atLeast(version, "v1.34") {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s has no Mixed Version Proxy that can be tested: v1.28 to v1.32 have that of "+
				"1.28, v1.34 and newer the one of today; use one of these, or subject %s", subject, version, scenario.SubjectNone)
		}
		return slices.Concat([]string{"--feature-gates=" + gates}, p.peerCAArguments(f), p.peerAddressArguments()), nil
	default:
		return nil, fmt.Errorf("subject %q: the local backend knows %s", subject, strings.Join(scenario.Subjects, ", "))
	}
}

// frontProxyArguments let servers prove their identity and name the user of a request.
func frontProxyArguments(p Place, f Files) []string {
	return []string{
		"--proxy-client-cert-file=" + f.key(p.frontProxy()+".crt"),
		"--proxy-client-key-file=" + f.key(p.frontProxy()+".key"),
		"--requestheader-client-ca-file=" + f.key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + p.allowedFrontProxies(),
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

// kubeadm reports whether the kube-apiserver gets only those flags of its own proxy that kubeadm
// sets.
func (p Place) kubeadm(subject string) bool {
	return p.setup().Flags == scenario.FlagsKubeadm && subject == scenario.SubjectBuiltin
}

// alphaGates switch on the proxy of 1.28 to 1.32. That proxy uses StorageVersion objects, whose API
// --runtime-config=api/all=true switches on. Source: KEP-4020, "Alpha";
// k8s.io/apiserver/pkg/features.
const alphaGates = scenario.Gate + "=true,StorageVersionAPI=true,APIServerIdentity=true"

// isAlpha reports whether a version has the proxy with the design of 1.28. 1.33 has neither design.
func isAlpha(version string) bool { return atLeast(version, "v1.28") && !atLeast(version, "v1.33") }

// CheckDesigns refuses versions whose own proxies cannot find each other. Proxies of 1.28 to 1.32
// learn from StorageVersion objects what peers serve, later ones from discovery.
// [APIServerArguments] checks whether a version has a proxy at all.
func CheckDesigns(from, to string) error {
	if isAlpha(from) == isAlpha(to) {
		return nil
	}
	return fmt.Errorf("%s and %s: the built-in proxy of v1.28 to v1.32 cannot be mixed with that of later versions, which learns what peers serve in another way; "+
		"give two versions of one design (or one release, with an API switched off in some servers: --from v1.30.14+without.batch.v1 --to v1.30.14), or --subject %s",
		from, to, scenario.SubjectReference)
}

// withoutArguments switch off the APIs that a version must not serve; see [release.Parse]. An
// explicit group version overrides api/all=true. Source:
// k8s.io/apiserver/pkg/server/resourceconfig/helpers.go, MergeAPIResourceConfigs
func withoutArguments(version string) ([]string, error) {
	r, err := release.Parse(version)
	if err != nil || len(r.Without) == 0 {
		return nil, err
	}
	return []string{"--runtime-config=" + r.RuntimeConfig()}, nil
}

// serving and frontProxy are the file names of a server's certificates, without endings.
func (p Place) serving() string { return variant("serving-"+p.Name, "", p.setup().Serving) }
func (p Place) frontProxy() string {
	return variant(frontProxyName, "-"+p.Name, p.setup().FrontProxy)
}

// variant names a certificate that differs from the usual one. of distinguishes the servers.
func variant(usual, of string, c scenario.Certificate) string {
	if c == "" {
		return usual
	}
	return usual + of + "-" + string(c)
}

// allowedFrontProxies are the common names of the front proxies that the server trusts.
func (p Place) allowedFrontProxies() string {
	if p.setup().FrontProxy == scenario.CertificateOther {
		return frontProxyName + "," + otherFrontProxyName
	}
	return frontProxyName
}

// peerCAArguments name the authority of the peers that the server trusts.
func (p Place) peerCAArguments(f Files) []string {
	switch p.setup().PeerCA {
	case scenario.TrustMissing:
		return nil
	case scenario.TrustStranger:
		return []string{"--peer-ca-file=" + f.key(strangerAuthority+".crt")}
	default:
		return []string{"--peer-ca-file=" + f.key("ca.crt")}
	}
}

// peerAddressArguments advertise the server to its peers, with the flags made only for this
// purpose.
func (p Place) peerAddressArguments() []string {
	at := p.Advertised
	if p.setup().Advertise == scenario.AdvertiseWrong {
		at = p.decoy()
	}
	switch p.setup().Advertise {
	case scenario.AdvertiseNothing, scenario.AdvertiseHost:
		return nil
	case scenario.AdvertiseIP:
		return []string{"--peer-advertise-ip=" + p.decoy().Addr().String()}
	case scenario.AdvertisePort:
		return []string{"--peer-advertise-port=" + strconv.Itoa(decoyPort)}
	default:
		return []string{"--peer-advertise-ip=" + at.Addr().String(), "--peer-advertise-port=" + strconv.Itoa(int(at.Port()))}
	}
}

// advertiseArguments advertise the server with the flag that every kube-apiserver has.
func (p Place) advertiseArguments() []string {
	if p.setup().Advertise == scenario.AdvertiseHost {
		return nil
	}
	return []string{"--advertise-address=" + p.Advertised.Addr().String()}
}

func atLeast(version, minor string) bool { return semver.Compare(version, minor) >= 0 }
