package local

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the programs of a run.
const (
	ProgramAPIServer = string(binaries.KubeAPIServer)
	ProgramReference = string(binaries.KubeAPIServerReference)
	ProgramExtension = "skewproof extension" // the extension apiserver: this executable
)

// Program returns the program of a server. Under the subject reference, a server whose proxy is
// switched off has the same program as the others.
func Program(subject string, setup *scenario.Setup) string {
	if subject == scenario.SubjectReference && !setup.IsPlain() {
		return ProgramReference
	}
	return ProgramAPIServer
}

// binary returns the executable of a server with that setup.
func (c *Config) binary(version string, setup *scenario.Setup) (string, error) {
	of := c.APIServers
	if Program(c.Subject, setup) != Program(c.Subject, nil) {
		of = c.Plain
	}
	for _, name := range []string{version, release.Of(version)} { // flags make other versions of a release
		if path, ok := of[name]; ok {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s of that version was prepared", Program(c.Subject, setup))
}

// Provide makes it possible to start servers of a version, with the kube-apiserver at path. If the
// run already has the version, Provide changes nothing, and path may be empty. Provide must not be
// called while a server is starting.
func (c *Cluster) Provide(version, path string) error {
	if _, ok := c.config.APIServers[version]; ok {
		return nil
	}
	if path == "" {
		return fmt.Errorf("the run has no kube-apiserver %s, and was given none", version)
	}
	c.config.APIServers[version] = path
	return nil
}

// EtcdArguments returns the command line of etcd 3.6 or later, without the program's name.
func EtcdArguments(f Files) []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + f.Data,
		"--listen-client-urls=https://" + etcdReal.String(),
		"--advertise-client-urls=https://" + etcdAdvertised.String(),
		"--listen-peer-urls=http://127.0.0.1:2380", // a single member: no other member dials it, and the sandbox's loopback is private
		"--client-cert-auth=true",
		"--trusted-ca-file=" + f.key("etcd-ca.crt"),
		"--cert-file=" + f.key("etcd-server.crt"),
		"--key-file=" + f.key("etcd-server.key"),
		"--log-level=warn",
		// kubeadm sets this flag too. Without it, a watch of a resource that is never written
		// learns of no newer revision.
		"--watch-progress-notify-interval=5s",
	}
}

// ExtensionArguments is the command line of the extension apiserver, without the program's name.
func ExtensionArguments(f Files) []string {
	return []string{
		"extension",
		"--address=" + extensionAddress.String(),
		"--tls-cert-file=" + f.key("extension.crt"),
		"--tls-private-key-file=" + f.key("extension.key"),
		"--requestheader-client-ca-file=" + f.key("front-proxy-ca.crt"),
		"--requestheader-allowed-name=" + frontProxyName,
		"--apis=" + f.key("extension-apis.json"),
	}
}
