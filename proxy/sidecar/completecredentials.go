package sidecar

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// completeCredentials reads all certificates, keys and authorities. It checks that the other ends
// of the connections would accept them.
func (c *completed) completeCredentials(wrong *problems, now time.Time) {
	creds := &credentials{}
	missing := func(flag, file, what string) bool {
		if file == "" {
			wrong.addf("%s is missing: name the file with %s", flag, what)
		}
		return file == ""
	}
	pair := func(what, certFlag, certFile, keyFlag, keyFile string) *keyPair {
		noCert, noKey := missing(certFlag, certFile, what), missing(keyFlag, keyFile, "the key of "+what)
		if noCert || noKey {
			return nil
		}
		flags := certFlag
		if keyFlag != certFlag {
			flags += ", " + keyFlag
		}
		k, err := loadKeyPair(what+" ("+flags+")", certFile, keyFile)
		wrong.add(err)
		return k
	}
	bundle := func(what, flag, file string, required bool) *authorities {
		if required && missing(flag, file, what) {
			return nil
		}
		a, err := loadAuthorities(what+" ("+flag+")", file)
		wrong.add(err)
		return a
	}
	creds.serving = pair("the serving certificate", "--tls-cert-file", c.TLSCertFile, "--tls-private-key-file", c.TLSPrivateKeyFile)
	for _, each := range c.TLSSNICertKeys {
		k := pair("the serving certificate of "+each.String(), "--tls-sni-cert-key", each.CertFile, "--tls-sni-cert-key", each.KeyFile)
		if k == nil {
			continue
		}
		wrong.add(validAt(k.leaf(), now, "--tls-sni-cert-key "+each.String()))
		creds.sni = append(creds.sni, namedKeyPair{k, each.Names})
	}
	creds.proxyClient = pair("the front-proxy client certificate", "--proxy-client-cert-file", c.ProxyClientCert,
		"--proxy-client-key-file", c.ProxyClientKey)
	creds.clientCA = bundle("the authorities of clients", "--client-ca-file", c.ClientCAFile, false)
	creds.requestHeaderCA = bundle("the authorities of front proxies", "--requestheader-client-ca-file", c.RequestHeaderCAFile, true)
	creds.peerCA = bundle("the authorities of peers", "--peer-ca-file", c.PeerCAFile, true)
	creds.upstreamCA = bundle("the authorities of the local kube-apiserver", "--upstream-ca-file", c.UpstreamCAFile, false)
	c.credentials = creds
	if creds.serving != nil {
		c.checkServing(wrong, now)
	}
	if creds.proxyClient != nil {
		c.checkProxyClient(wrong, now)
	}
	if c.Kubeconfig != "" {
		if _, err := os.Stat(c.Kubeconfig); err != nil {
			wrong.addf("--kubeconfig: %w", err)
		}
	}
}

// checkServing checks that peers would accept the serving certificate that the sidecar shows to
// them.
func (c *completed) checkServing(wrong *problems, now time.Time) {
	wrong.add(validAt(c.credentials.serving.leaf(), now, "--tls-cert-file "+c.TLSCertFile))
	shown, where := c.credentials.serving, "--tls-cert-file "+c.TLSCertFile
	if k := certificateNamed(c.credentials.sni, peerServerName); k != nil {
		shown, where = k, "--tls-sni-cert-key "+strings.Join(k.files, ",")
	}
	if err := shown.leaf().VerifyHostname(peerServerName); err != nil {
		wrong.addf("%s: peers will refuse this certificate, because it does not have the name %s (it has %q): issue one that has it",
			where, peerServerName, shown.leaf().DNSNames)
	}
	if c.credentials.peerCA == nil {
		return
	}
	if err := verify(shown, c.credentials.peerCA, x509.ExtKeyUsageServerAuth, now); err != nil {
		// Only a warning: peers may trust other authorities, for instance during a rotation.
		c.warnings = append(c.warnings, fmt.Sprintf("%s: peers with the same --peer-ca-file will refuse this certificate: %v", where, err))
	}
}

// checkProxyClient checks that the local server and the peers would trust the sidecar's identity
// headers. They have the same front-proxy authorities as this sidecar.
func (c *completed) checkProxyClient(wrong *problems, now time.Time) {
	leaf := c.credentials.proxyClient.leaf()
	where := "--proxy-client-cert-file " + c.ProxyClientCert
	if err := validAt(leaf, now, where); err != nil {
		wrong.add(err)
		return
	}
	if c.credentials.requestHeaderCA == nil {
		return
	}
	if err := verify(c.credentials.proxyClient, c.credentials.requestHeaderCA, x509.ExtKeyUsageClientAuth, now); err != nil {
		wrong.addf("%s: --requestheader-client-ca-file does not vouch for it, so neither would the local kube-apiserver or peers: %w", where, err)
	}
	if name := leaf.Subject.CommonName; len(c.RequestHeaderNames) > 0 && !slices.Contains(c.RequestHeaderNames, name) {
		wrong.addf("%s: its common name %q is not in --requestheader-allowed-names %q, so no kube-apiserver would trust the identity headers",
			where, name, c.RequestHeaderNames)
	}
}

func validAt(leaf *x509.Certificate, now time.Time, where string) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%s: the certificate has expired on %s: renew it", where, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%s: the certificate is not valid before %s: set the clock, or wait", where, leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}

func verify(k *keyPair, by *authorities, usage x509.ExtKeyUsage, now time.Time) error {
	options := x509.VerifyOptions{Roots: by.pool(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now}
	for _, der := range k.current.Load().Certificate[1:] {
		intermediate, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		options.Intermediates.AddCert(intermediate)
	}
	_, err := k.leaf().Verify(options)
	return err
}
