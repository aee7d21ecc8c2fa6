package local

import (
	"fmt"
	"strconv"

	"golang.org/x/mod/semver"
)

// The subjects that a kube-apiserver itself can be.
const (
	SubjectNone    = "none"    // the Mixed Version Proxy switched off
	SubjectBuiltin = "builtin" // the kube-apiserver's own Mixed Version Proxy
)

// Gate is the feature gate of the Mixed Version Proxy.
const Gate = "UnknownVersionInteroperabilityProxy"

// APIServerArguments returns the command line of a kube-apiserver, without the program's name. It is a function of its
// arguments alone: it touches no file and starts nothing.
func APIServerArguments(version, subject string, p Place, f Files) ([]string, error) {
	args := []string{
		"--advertise-address=" + p.Advertised.Addr().String(),
		"--bind-address=0.0.0.0",
		"--secure-port=" + strconv.Itoa(int(p.Real.Port())),
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
		"--proxy-client-cert-file=" + f.key("front-proxy-client.crt"),
		"--proxy-client-key-file=" + f.key("front-proxy-client.key"),
		"--requestheader-client-ca-file=" + f.key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	if atLeast(version, "v1.34") {
		args = append(args, "--requestheader-uid-headers=X-Remote-Uid")
	}
	proxy, err := proxyArguments(version, subject, p, f)
	return append(args, proxy...), err
}

// proxyArguments switches the built-in proxy on or off, explicitly: a run must not change its meaning with a default.
func proxyArguments(version, subject string, p Place, f Files) ([]string, error) {
	switch subject {
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
		return nil, fmt.Errorf("subject %q: the local backend knows %s and %s", subject, SubjectBuiltin, SubjectNone)
	}
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
