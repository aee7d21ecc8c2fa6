// Package users makes the client configurations of a run: for the administrator, users with client
// certificates, anonymous clients, and readers of etcd.
package users

import (
	"fmt"
	"net/http"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/pki"
)

// AdminRequest is for the administrator's certificate, which is issued under the name "admin".
var AdminRequest = pki.Request{CommonName: "admin", Organization: []string{"system:masters"}, Client: true}

// Agent is the User-Agent of the administrator's requests that the run itself sends. Programs that
// the run starts with the administrator's kubeconfig, such as kubectl and e2e.test, have their own.
const Agent = "skewproof"

// Users are users with certificates of an authority.
type Users struct{ Authority *pki.Authority }

func (u Users) config(certificate, key string) *rest.Config {
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: u.Authority.CertFile(), CertFile: certificate, KeyFile: key}}
}

// Admin returns the administrator's identity, without a host.
func (u Users) Admin() *rest.Config {
	admin := filepath.Join(u.Authority.Dir, "admin")
	config := u.config(admin+".crt", admin+".key")
	config.UserAgent = Agent
	return config
}

// User returns the identity of a user with a client certificate, without a host and without any
// rights.
func (u Users) User(name string) (*rest.Config, error) {
	pair, err := u.Authority.Issue("user-"+name, pki.Request{CommonName: name, Client: true})
	if err != nil {
		return nil, err
	}
	return u.config(pair.Cert, pair.Key), nil
}

// Anonymous returns a configuration that trusts the cluster and has no identity. It is for bearer
// tokens.
func (u Users) Anonymous() *rest.Config { return u.config("", "") }

// EtcdClient returns a client for etcd, from etcd-ca.crt, etcd-client.crt and etcd-client.key in
// dir.
func EtcdClient(dir string) (*http.Client, error) {
	file := func(name string) string { return filepath.Join(dir, name) }
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: file("etcd-ca.crt"), CertFile: file("etcd-client.crt"), KeyFile: file("etcd-client.key"),
	}})
	if err != nil {
		return nil, fmt.Errorf("prepare to ask etcd: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}
