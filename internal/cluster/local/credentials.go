package local

import (
	"fmt"
	"net/netip"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/skewproof/skewproof/internal/pki"
)

// credentials writes every key, certificate and kubeconfig of the run. It returns the authority of servers and clients.
func credentials(places []Place, f Files) (*pki.Authority, error) {
	ca, err := pki.NewAuthority(f.Keys, "ca")
	if err != nil {
		return nil, err
	}
	frontProxy, err := pki.NewAuthority(f.Keys, "front-proxy-ca")
	if err != nil {
		return nil, err
	}
	etcd, err := pki.NewAuthority(f.Keys, "etcd-ca")
	if err != nil {
		return nil, err
	}
	if _, err := pki.SigningKey(f.Keys, "service-account"); err != nil {
		return nil, err
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	issues := []struct {
		by   *pki.Authority
		name string
		pki.Request
	}{
		{etcd, "etcd-server", pki.Request{CommonName: "etcd", Server: true, Addresses: []netip.Addr{loopback, etcdAdvertised.Addr()}}},
		{etcd, "etcd-client", pki.Request{CommonName: "kube-apiserver", Client: true}},
		{frontProxy, "front-proxy-client", pki.Request{CommonName: "front-proxy-client", Client: true}},
		{ca, "admin", pki.Request{CommonName: "admin", Organization: []string{"system:masters"}, Client: true}},
		// A name of its own, so that audit logs tell a sidecar's own requests from those of others.
		{ca, "proxy", pki.Request{CommonName: "skewproof-proxy", Organization: []string{"system:masters"}, Client: true}},
	}
	for _, p := range places {
		issues = append(issues, struct {
			by   *pki.Authority
			name string
			pki.Request
		}{ca, "serving-" + p.Name, pki.Request{
			CommonName: p.Name,
			Server:     true,
			// Peers verify kubernetes.default.svc; clients dial the advertised address.
			DNSNames:  []string{p.Name, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			Addresses: []netip.Addr{loopback, p.Advertised.Addr(), p.Real.Addr(), netip.MustParseAddr("10.96.0.1")},
		}})
	}
	for _, i := range issues {
		if _, err := i.by.Issue(i.name, i.Request); err != nil {
			return nil, err
		}
	}
	for _, p := range places {
		if err := writeKubeconfig(f.kubeconfig(p.Name), p.Name, p.Advertised.String(), "admin", f); err != nil {
			return nil, err
		}
		// A sidecar asks the kube-apiserver beside it, over the host's own loopback.
		if err := writeKubeconfig(f.ownKubeconfig(p.Name), p.Name, loopbackOf(p.Own).String(), "proxy", f); err != nil {
			return nil, err
		}
	}
	// Every request at metadata level, but not twice: who served what is all that is asked of the log.
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted]\nrules:\n- level: Metadata\n"
	return ca, os.WriteFile(f.auditPolicy(), []byte(policy), 0o600)
}

// writeKubeconfig writes a way to one server for a user whose certificate lies with the keys.
func writeKubeconfig(path, server, address, user string, f Files) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[server] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthority: f.key("ca.crt")}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: f.key(user + ".crt"), ClientKey: f.key(user + ".key")}
	config.Contexts[server] = &clientcmdapi.Context{Cluster: server, AuthInfo: user}
	config.CurrentContext = server
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write a kubeconfig of server %q: %w", server, err)
	}
	return nil
}
