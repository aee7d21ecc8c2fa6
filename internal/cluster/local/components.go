package local

import (
	"errors"
	"fmt"

	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the programs of a run.
const (
	ProgramAPIServer = "kube-apiserver"
	ProgramProxy     = "skewproof proxy"     // the reference proxy as a sidecar: this executable
	ProgramExtension = "skewproof extension" // the extension apiserver: this executable
)

// Component describes one program of a server. Nothing runs.
type Component struct {
	Program string
	// Args is the command line without the program's name. That of ProgramProxy begins with
	// "proxy".
	Args []string
	// Log is the file for its output.
	Log string
	// URL is where it answers, around the links. It is ready when URL/readyz answers 200.
	URL string
}

// Components returns the programs of one server of that version, in the order in which they start:
// each starts when the one before it is ready. The result depends only on the arguments.
func Components(version, subject string, p Place, f Files) ([]Component, error) {
	args, err := APIServerArguments(version, subject, p, f)
	if err != nil {
		return nil, err
	}
	subject, p = p.configured(subject)
	all := []Component{{ProgramAPIServer, args, f.log(p.Name), "https://" + p.Own.String()}}
	if subject == scenario.SubjectReference {
		all = append(all, Component{ProgramProxy, ProxyArguments(p, f), f.log(p.Name + "-proxy"), "https://" + p.Real.String()})
	}
	return all, nil
}

// binary returns the executable of a program. version is that of a kube-apiserver.
func (c *Config) binary(program, version string) (string, error) {
	if program != ProgramAPIServer {
		if c.Proxy == "" {
			return "", errors.New("no executable of the proxy was given")
		}
		return c.Proxy, nil
	}
	for _, name := range []string{version, release.Of(version)} { // flags make other versions of a release
		if path, ok := c.APIServers[name]; ok {
			return path, nil
		}
	}
	return "", errors.New("no binary of that version was prepared")
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
