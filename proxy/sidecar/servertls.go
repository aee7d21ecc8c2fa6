package sidecar

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"
)

// completeServing checks the flags for TLS and HTTP of the front door. The names of versions and
// cipher suites, the defaults and the bounds are kube-apiserver's (k8s.io/apiserver,
// server/options).
func (c *completed) completeServing(wrong *problems) {
	var err error
	if c.minTLS, err = cliflag.TLSVersion(c.TLSMinVersion); err != nil {
		wrong.addf("--tls-min-version %q: want one of %s", c.TLSMinVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	if c.minTLS == tls.VersionTLS10 || c.minTLS == tls.VersionTLS11 {
		c.warnings = append(c.warnings, fmt.Sprintf("--tls-min-version %s: TLS before 1.2 is insecure", c.TLSMinVersion))
	}
	c.completeCiphers(wrong)
	if most := (1<<31 - 1) / streamWindow; c.HTTP2MaxStreams < 0 || c.HTTP2MaxStreams > most {
		wrong.addf("--http2-max-streams-per-connection %d: want 0 to %d", c.HTTP2MaxStreams, most)
	}
	if c.GoawayChance < 0 || c.GoawayChance > maxGoawayChance {
		wrong.addf("--goaway-chance %g: want 0 to %g", c.GoawayChance, maxGoawayChance)
	}
}

func (c *completed) completeCiphers(wrong *problems) {
	insecure := cliflag.InsecureTLSCiphers()
	var ids []uint16
	for _, name := range c.TLSCipherSuites {
		id, err := cliflag.TLSCipherSuites([]string{name})
		if err != nil {
			wrong.addf("--tls-cipher-suites %q: want names of %s", name, strings.Join(cliflag.TLSCipherPossibleValues(), ", "))
			return
		}
		if _, ok := insecure[name]; ok {
			c.warnings = append(c.warnings, fmt.Sprintf("--tls-cipher-suites %s: this cipher suite is insecure", name))
		}
		ids = append(ids, id...)
	}
	// RFC 7540, 9.2.2, requires these. kube-apiserver does not start without them.
	required := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	has := func(id uint16) bool { return slices.Contains(ids, id) }
	if len(ids) > 0 && c.minTLS < tls.VersionTLS13 && !slices.ContainsFunc(required, has) {
		wrong.addf("--tls-cipher-suites: HTTP/2 requires %s or %s: add one", tls.CipherSuiteName(required[0]), tls.CipherSuiteName(required[1]))
	}
	c.ciphers = ids
}

// serverTLS is the TLS server configuration for new connections. Client certificates are optional.
// They are verified with each request, because the authorities can change.
type serverTLS struct {
	credentials *credentials
	min         uint16
	ciphers     []uint16
	current     atomic.Pointer[servingNow]
}

// servingNow is the configuration for new connections.
type servingNow struct {
	config *tls.Config
	named  map[string]*tls.Certificate
}

func newServerTLS(c *completed) *serverTLS {
	s := &serverTLS{credentials: c.credentials, min: c.minTLS, ciphers: c.ciphers}
	s.renew()
	return s
}

// configFor is for [tls.Config.GetConfigForClient]. A client that asks for no name gets the
// certificate for the IP address to which it connected, if there is one (k8s.io/apiserver,
// dynamiccertificates, GetConfigForClient).
func (s *serverTLS) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	now := s.current.Load()
	if hello.ServerName != "" || len(now.named) == 0 {
		return now.config, nil
	}
	host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
	if byAddress := now.named[host]; err == nil && byAddress != nil {
		config := now.config.Clone()
		config.Certificates = []tls.Certificate{*byAddress}
		return config, nil
	}
	return now.config, nil
}

// renew uses the present certificates for new connections. It also names the present authorities to
// clients, which choose their certificate by these names.
func (s *serverTLS) renew() {
	hint := x509.NewCertPool()
	for _, a := range []*authorities{s.credentials.clientCA, s.credentials.requestHeaderCA} {
		if a != nil {
			hint.AppendCertsFromPEM(a.read[0])
		}
	}
	now := &servingNow{named: map[string]*tls.Certificate{}, config: &tls.Config{
		MinVersion:   s.min,
		CipherSuites: s.ciphers,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*s.credentials.serving.current.Load()},
		ClientAuth:   tls.RequestClientCert,
		ClientCAs:    hint,
	}}
	for name, k := range byName(s.credentials.sni) {
		now.named[name] = k.current.Load()
	}
	for _, k := range s.credentials.sni {
		// crypto/tls uses the first certificate with the name that the client asks for, or else the
		// very first.
		now.config.Certificates = append(now.config.Certificates, *k.current.Load())
	}
	if len(now.named) > 0 {
		now.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return lookUpName(now.named, hello.ServerName), nil // nil: one of Certificates
		}
	}
	s.current.Store(now)
}

// namedKeyPair is a certificate of --tls-sni-cert-key.
type namedKeyPair struct {
	*keyPair
	names []string // given with the flag; none: the names of the certificate
}

// byName returns the certificate for each name. Names given with a flag come before names of
// certificates, and earlier flags before later ones (k8s.io/apiserver, dynamiccertificates,
// BuildNamedCertificates).
func byName(pairs []namedKeyPair) map[string]*keyPair {
	given, own := map[string]*keyPair{}, map[string]*keyPair{}
	for _, k := range slices.Backward(pairs) {
		for _, name := range k.names {
			given[strings.ToLower(name)] = k.keyPair
		}
		if len(k.names) == 0 {
			for _, name := range namesOf(k.leaf()) {
				own[strings.ToLower(name)] = k.keyPair
			}
		}
	}
	maps.Copy(own, given)
	return own
}

// namesOf returns the names for which a certificate is shown, without IP addresses.
func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	cn := leaf.Subject.CommonName
	if net.ParseIP(cn) == nil && (cn == "*" || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(cn, "*."))) == 0) {
		names = append(names, cn)
	}
	return names
}

// lookUpName returns the entry for a name. If there is none, it returns the entry for the name with
// a wildcard as its first label.
func lookUpName[T any](named map[string]*T, name string) *T {
	name = strings.ToLower(name)
	if found, ok := named[name]; ok {
		return found
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		return named["*."+rest]
	}
	return named["*"]
}

// certificateNamed returns the certificate for a client that asks for a name. Nil means the
// certificate of --tls-cert-file, if that has the name.
func certificateNamed(pairs []namedKeyPair, name string) *keyPair {
	return lookUpName(byName(pairs), name)
}
