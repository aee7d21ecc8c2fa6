package local

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/skewproof/skewproof/internal/cluster/requestlog"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the common names of front-proxy certificates. Every server allows the first. Only the
// server that has a certificate with the second name allows that name.
const (
	frontProxyName      = "front-proxy-client"
	otherFrontProxyName = "front-proxy-of-another"
)

// strangerAuthority is the file name of an authority that no server trusts.
const strangerAuthority = "stranger-ca"

type authorities struct {
	servers      *pki.Authority // and clients
	frontProxies *pki.Authority
	stranger     *pki.Authority // no server trusts it; nil until it is needed
}

func credentials(places []Place, f Files) (*authorities, error) {
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
	type issue struct {
		by   *pki.Authority
		name string
		pki.Request
	}
	issues := []issue{
		// etcd's JSON gateway connects to etcd itself with this certificate.
		{etcd, "etcd-server", pki.Request{CommonName: "etcd", Server: true, Client: true,
			Addresses: []netip.Addr{loopback, etcdAdvertised.Addr()}}},
		{etcd, "etcd-client", pki.Request{CommonName: "kube-apiserver", Client: true}},
		{frontProxy, frontProxyName, frontProxyRequest()},
		{ca, "admin", users.AdminRequest},
	}
	for _, p := range places {
		issues = append(issues, issue{ca, p.serving(), servingRequest(p)})
	}
	for _, i := range issues {
		if _, err := i.by.Issue(i.name, i.Request); err != nil {
			return nil, err
		}
	}
	if err := writeKubeconfig(f.Kubeconfig(), "admin", f, waysIn(places)...); err != nil {
		return nil, err
	}
	return &authorities{servers: ca, frontProxies: frontProxy}, os.WriteFile(f.auditPolicy(), []byte(requestlog.AuditPolicy), 0o600)
}

func servingRequest(p Place) pki.Request {
	return pki.Request{
		CommonName: p.Name,
		Server:     true,
		// Peers verify kubernetes.default.svc. Clients connect to the advertised address, or to an
		// address of the load balancer.
		DNSNames: []string{p.Name, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		Addresses: []netip.Addr{loopback, p.Advertised.Addr(), p.Real.Addr(), balancerAddress.Addr(), steadyAddress.Addr(),
			netip.MustParseAddr("10.96.0.1")},
	}
}

// frontProxyRequest requests the certificate with which servers prove that they may speak for
// users.
func frontProxyRequest() pki.Request { return pki.Request{CommonName: frontProxyName, Client: true} }

// issueVariant issues a certificate that differs in one way from the one requested.
func (a *authorities) issueVariant(by *pki.Authority, name string, r pki.Request, how scenario.Certificate) (pki.Pair, error) {
	switch how {
	case scenario.CertificateExpired:
		r.Until = time.Now().Add(-time.Minute)
	case scenario.CertificateStranger:
		by = a.stranger
	case scenario.CertificateOther:
		if r.Server {
			r.CommonName, r.DNSNames, r.Addresses = "somewhere-else", []string{"somewhere-else.example"}, nil
		} else {
			r.CommonName = otherFrontProxyName
		}
	}
	return by.Issue(name, r)
}

// makeStranger makes the authority that no server trusts. Later calls do nothing.
func (a *authorities) makeStranger(dir string) error {
	if a.stranger != nil {
		return nil
	}
	var err error
	a.stranger, err = pki.NewAuthority(dir, strangerAuthority)
	return err
}

// way is a path to a server, with the name of its context.
type way struct {
	context string
	address netip.AddrPort
}

// waysIn returns all paths to the servers of a run: see [Files.Kubeconfig].
func waysIn(places []Place) (ways []way) {
	for _, p := range places {
		ways = append(ways, way{p.Name, p.Advertised}, way{p.Name + "-direct", p.Real})
	}
	return append(ways, way{balancerName, balancerAddress})
}

// writeKubeconfig writes a kubeconfig of a user, with a context for each way. The first context is
// the current one. The keys must include the user's.
func writeKubeconfig(path, user string, f Files, ways ...way) error {
	config := clientcmdapi.NewConfig()
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: f.key(user + ".crt"), ClientKey: f.key(user + ".key")}
	for _, w := range ways {
		config.Clusters[w.context] = &clientcmdapi.Cluster{Server: "https://" + w.address.String(), CertificateAuthority: f.key("ca.crt")}
		config.Contexts[w.context] = &clientcmdapi.Context{Cluster: w.context, AuthInfo: user}
	}
	config.CurrentContext = ways[0].context
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
