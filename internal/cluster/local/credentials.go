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
		if err := writeKubeconfig(f, p); err != nil {
			return nil, err
		}
	}
	// Every request at metadata level, but not twice: who served what is all that is asked of the log.
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted]\nrules:\n- level: Metadata\n"
	return ca, os.WriteFile(f.auditPolicy(), []byte(policy), 0o600)
}

func writeKubeconfig(f Files, p Place) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[p.Name] = &clientcmdapi.Cluster{Server: "https://" + p.Advertised.String(), CertificateAuthority: f.key("ca.crt")}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificate: f.key("admin.crt"), ClientKey: f.key("admin.key")}
	config.Contexts[p.Name] = &clientcmdapi.Context{Cluster: p.Name, AuthInfo: "admin"}
	config.CurrentContext = p.Name
	if err := clientcmd.WriteToFile(*config, f.kubeconfig(p.Name)); err != nil {
		return fmt.Errorf("write the kubeconfig of server %q: %w", p.Name, err)
	}
	return nil
}
