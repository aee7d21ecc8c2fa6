package local

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// The subjects that this backend knows: whose Mixed Version Proxy is tested.
const (
	SubjectNone      = "none"      // nobody's: that of the kube-apiserver is switched off
	SubjectBuiltin   = "builtin"   // the kube-apiserver's own
	SubjectReference = "reference" // this project's, as a sidecar in front of each kube-apiserver, whose own is switched off
)

// Subjects lists them.
var Subjects = []string{SubjectBuiltin, SubjectReference, SubjectNone}

// Gate is the feature gate of the Mixed Version Proxy.
const Gate = "UnknownVersionInteroperabilityProxy"

// APIServerArguments returns the command line of a kube-apiserver, without the program's name. It is a function of its
// arguments alone: it touches no file and starts nothing.
func APIServerArguments(version, subject string, p Place, f Files) ([]string, error) {
	args := []string{
		"--advertise-address=" + p.Advertised.Addr().String(),
		// Not loopback alone, also where a sidecar stands in front: the harness asks from outside the host what the server itself
		// serves. Nobody else can, since the sandbox forwards no packets and the switch leads to p.Real only.
		"--bind-address=0.0.0.0",
		"--secure-port=" + strconv.Itoa(int(p.Own.Port())),
		"--tls-cert-file=" + f.key("serving-"+p.Name+".crt"),
		"--tls-private-key-file=" + f.key("serving-"+p.Name+".key"),
		"--client-ca-file=" + f.key("ca.crt"),
		"--etcd-servers=https://" + etcdAdvertised.String(),
		"--etcd-cafile=" + f.key("etcd-ca.crt"),
		"--etcd-certfile=" + f.key("etcd-client.crt"),
		"--etcd-keyfile=" + f.key("etcd-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + f.key("service-account.pub"),
		"--service-account-signing-key-file=" + f.key("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC",
		// Every API a version has, so that the versions differ in both directions: without the betas a newer
		// server never lacks what an older one serves.
		"--runtime-config=api/all=true",
		// The kubernetes Service is nobody's business here, and its reconciler would fight over it.
		"--endpoint-reconciler-type=none",
		"--audit-policy-file=" + f.auditPolicy(),
		"--audit-log-path=" + f.audit(p.Name),
		"--audit-log-maxsize=4096",
	}
	args = append(args, frontProxyArguments(f)...)
	if atLeast(version, "v1.34") {
		args = append(args, "--requestheader-uid-headers=X-Remote-Uid")
	}
	mvp, err := mvpArguments(version, subject, p, f)
	return append(args, mvp...), err
}

// mvpArguments switches the built-in proxy on or off, explicitly: a run must not change its meaning with a default.
func mvpArguments(version, subject string, p Place, f Files) ([]string, error) {
	switch subject {
	case SubjectReference:
		if !atLeast(version, "v1.30") {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s is older than v1.30, the oldest that the sidecar is tested with; "+
				"use v1.30 or newer, or subject %s", subject, version, SubjectNone)
		}
		return []string{"--feature-gates=" + Gate + "=false"}, nil
	case SubjectNone:
		if !atLeast(version, "v1.28") {
			return nil, nil // no such gate yet
		}
		return []string{"--feature-gates=" + Gate + "=false"}, nil
	case SubjectBuiltin:
		if !atLeast(version, "v1.34") {
			return nil, fmt.Errorf("subject %s: kube-apiserver %s is older than v1.34, whose Mixed Version Proxy (KEP-4020, alpha) "+
				"works by StorageVersion objects and is not supported yet; use v1.34 or newer, or subject %s", subject, version, SubjectNone)
		}
		return []string{
			"--feature-gates=" + Gate + "=true",
			"--peer-ca-file=" + f.key("ca.crt"),
			"--peer-advertise-ip=" + p.Advertised.Addr().String(),
			"--peer-advertise-port=" + strconv.Itoa(int(p.Advertised.Port())),
		}, nil
	default:
		return nil, fmt.Errorf("subject %q: the local backend knows %s", subject, strings.Join(Subjects, ", "))
	}
}

// frontProxyArguments are those by which servers, and sidecars, prove to each other who they are and for whom they ask.
func frontProxyArguments(f Files) []string {
	return []string{
		"--proxy-client-cert-file=" + f.key("front-proxy-client.crt"),
		"--proxy-client-key-file=" + f.key("front-proxy-client.key"),
		"--requestheader-client-ca-file=" + f.key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
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
		"--peer-advertise-ip=" + p.Advertised.Addr().String(),
		"--peer-advertise-port=" + strconv.Itoa(int(p.Advertised.Port())),
		// To clients and peers it is the server: the same certificate, the same authorities.
		"--tls-cert-file=" + f.key("serving-"+p.Name+".crt"),
		"--tls-private-key-file=" + f.key("serving-"+p.Name+".key"),
		"--client-ca-file=" + f.key("ca.crt"),
		"--peer-ca-file=" + f.key("ca.crt"),
		"--upstream=https://" + loopbackOf(p.Own).String(),
		"--upstream-ca-file=" + f.key("ca.crt"),
		"--kubeconfig=" + f.ownKubeconfig(p.Name),
		"--access-log=" + f.access(p.Name),
		"--requestheader-uid-headers=X-Remote-Uid",
	}
	return append(args, frontProxyArguments(f)...)
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
