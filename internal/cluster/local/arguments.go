package local

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/scenario"
)

// APIServerArguments returns the command line of a kube-apiserver, without the program's name. It is a function of its
// arguments alone: it touches no file and starts nothing.
func APIServerArguments(version, subject string, p Place, f Files) ([]string, error) {
	subject, p = p.configured(subject)
	serving := p.serving()
	if subject == scenario.SubjectReference {
		serving = Place{Name: p.Name}.serving() // what is shown is the sidecar's
	}
	args := append(p.advertiseArguments(),
		// Not loopback alone, also where a sidecar stands in front: the harness asks from outside the host what the server itself
		// serves. Nobody else can, since the sandbox forwards no packets and the switch leads to p.Real only.
		"--bind-address=0.0.0.0",
		"--secure-port="+strconv.Itoa(int(p.Own.Port())),
		"--tls-cert-file="+f.key(serving+".crt"),
		"--tls-private-key-file="+f.key(serving+".key"),
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
		// Every API a version has, so that the versions differ in both directions: without the betas a newer
		// server never lacks what an older one serves.
		"--runtime-config=api/all=true",
		// The kubernetes Service is nobody's business here, and its reconciler would fight over it.
		"--endpoint-reconciler-type=none",
		"--audit-policy-file="+f.auditPolicy(),
		"--audit-log-path="+f.audit(p.Name),
		"--audit-log-maxsize=4096",
	)
	args = append(args, frontProxyArguments(p, f)...)
	if emulated := p.setup().EmulatedVersion; emulated != "" {
		args = append(args, "--emulated-version="+emulated)
	}
	if atLeast(p.behaves(version), "v1.34") && !p.kubeadm(subject) {
		args = append(args, "--requestheader-uid-headers=X-Remote-Uid")
	}
	without, err := withoutArguments(version)
	if err != nil {
		return nil, err
	}
	mvp, err := mvpArguments(version, subject, p, f)
	return slices.Concat(args, without, mvp), err
}

// mvpArguments switches the built-in proxy on or off, explicitly: a run must not change its meaning with a default. Nor with the version that a server emulates,
// whose default the gate has then: off, up to 1.35. The proxy itself is that of the server's own version, whatever it emulates.
func mvpArguments(version, subject string, p Place, f Files) ([]string, error) {
	if p.kubeadm(subject) {
		return nil, nil
	}
	switch subject {
	case scenario.SubjectReference:
		if !atLeast(version, "v1.30") {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s is older than v1.30, the oldest that the sidecar is tested with; "+
				"use v1.30 or newer, or subject %s", subject, version, scenario.SubjectNone)
		}
		return []string{"--feature-gates=" + scenario.Gate + "=false"}, nil
	case scenario.SubjectNone:
		if !atLeast(version, "v1.28") {
			return nil, nil // no such gate yet
		}
		return []string{"--feature-gates=" + scenario.Gate + "=false"}, nil
	case scenario.SubjectBuiltin:
		if isAlpha(version) {
			return alphaArguments(p, f), nil
		}
		if !atLeast(version, "v1.34") {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s has no Mixed Version Proxy that can be tested: v1.28 to v1.32 have that of "+
				"1.28, v1.34 and newer the one of today; use one of these, or subject %s", subject, version, scenario.SubjectNone)
		}
		return slices.Concat([]string{"--feature-gates=" + scenario.Gate + "=true"}, p.peerCAArguments(f), p.peerAddressArguments()), nil
	default:
		return nil, fmt.Errorf("subject %q: the local backend knows %s", subject, strings.Join(scenario.Subjects, ", "))
	}
}

// frontProxyArguments are those by which servers, and sidecars, prove to each other who they are and for whom they ask.
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

// ProxyArguments returns the command line of the sidecar in front of a kube-apiserver, without the program's name.
func ProxyArguments(p Place, f Files) []string {
	args := []string{
		"proxy",
		"--policy=reference",
		"--bind-address=0.0.0.0",
		"--secure-port=" + strconv.Itoa(int(p.Real.Port())),
		// To clients and peers it is the server: the same certificate, the same authorities.
		"--tls-cert-file=" + f.key(p.serving()+".crt"),
		"--tls-private-key-file=" + f.key(p.serving()+".key"),
		"--client-ca-file=" + f.key("ca.crt"),
		"--upstream=https://" + loopbackOf(p.Own).String(),
		"--upstream-ca-file=" + f.key("ca.crt"),
		"--kubeconfig=" + f.ownKubeconfig(p.Name),
		"--access-log=" + f.access(p.Name),
		"--requestheader-uid-headers=X-Remote-Uid",
	}
	address := p.peerAddressArguments()
	if len(address) < 2 {
		address = append(address, p.advertiseArguments()...)
	}
	return slices.Concat(args, address, p.peerCAArguments(f), frontProxyArguments(p, f))
}

// kubeadm reports whether the kube-apiserver is to have no other flags for its own proxy than kubeadm gives it. Where the subject is that there
// is no proxy, it stays switched off.
func (p Place) kubeadm(subject string) bool {
	return p.setup().Flags == scenario.FlagsKubeadm && subject != scenario.SubjectNone
}

// loopbackOf is an address as seen from its own host.
func loopbackOf(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), a.Port())
}

// EtcdArguments returns the command line of etcd, without the program's name.
func EtcdArguments(f Files) []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + f.Data,
		"--listen-client-urls=https://" + etcdReal.String(),
		"--advertise-client-urls=https://" + etcdAdvertised.String(),
		"--listen-peer-urls=http://127.0.0.1:2380", // a single member: nobody dials it, and the sandbox's loopback is private
		"--client-cert-auth=true",
		"--trusted-ca-file=" + f.key("etcd-ca.crt"),
		"--cert-file=" + f.key("etcd-server.crt"),
		"--key-file=" + f.key("etcd-server.key"),
		"--log-level=warn",
	}
}

func atLeast(version, minor string) bool { return semver.Compare(version, minor) >= 0 }
