package sidecar

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
)

// handshake connects to the front door, verifies it, and returns the certificate that it shows.
func (r *running) handshake(adjust func(*tls.Config)) (*x509.Certificate, tls.ConnectionState, error) {
	config := &tls.Config{RootCAs: pool(r.ca), ServerName: peerServerName, MinVersion: tls.VersionTLS10}
	adjust(config)
	conn, err := tls.Dial("tcp", r.front, config)
	if err != nil {
		return nil, tls.ConnectionState{}, err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	return state.PeerCertificates[0], state, nil
}

func (w *world) sniPair(name string, names []string, given ...string) cliflag.NamedCertKey {
	cert, key := w.ca.issue(subject{name: "sni-" + name, dns: names}).write(w.t, w.dir, "sni-"+name)
	return cliflag.NamedCertKey{CertFile: cert, KeyFile: key, Names: given}
}

// The certificate for a name that the client asks for is chosen as in kube-apiserver.
func TestCertificateForTheNameAskedFor(t *testing.T) {
	_, r := one(t, func(w *world, o *Options) {
		o.TLSSNICertKeys = []cliflag.NamedCertKey{
			w.sniPair("elsewhere", []string{"d.example", "*.example"}, "d.example"), // the names in the certificate do not count
			w.sniPair("exact", []string{"a.example"}),
			w.sniPair("second", []string{"a.example", "b.example"}),
			w.sniPair("wildcard", []string{"*.example", "*.other.example"}),
			w.sniPair("given", []string{"x.given.example", "c.example"}, "c.example", "*.given.example"),
			w.sniPair("late", []string{"c.example"}),
		}
	})
	for asked, want := range map[string]string{
		"a.example":       "sni-exact",  // the earlier flag
		"A.Example":       "sni-exact",  // names have no case
		"b.example":       "sni-second", // the exact name, not the wildcard
		"d.example":       "sni-elsewhere",
		"z.example":       "sni-wildcard", // one label
		"y.other.example": "sni-wildcard",
		"x.given.example": "sni-given", // given with the flag
		"c.example":       "sni-given", // a given name comes before a name of a certificate
		"C.example":       "sni-given",
		peerServerName:    "kube-apiserver",
		"localhost":       "kube-apiserver",
	} {
		got, _, err := r.handshake(func(c *tls.Config) { c.ServerName = asked })
		if err != nil || got.Subject.CommonName != want {
			t.Errorf("asked for %s: %v, error %v; want %s", asked, subjectOf(got), err, want)
		}
	}
	// A wildcard stands for one label only, not for two.
	if got, _, err := r.handshake(func(c *tls.Config) { c.ServerName = "a.b.example" }); err == nil {
		t.Errorf("asked for a.b.example: %s", subjectOf(got))
	}
}

func subjectOf(c *x509.Certificate) string {
	if c == nil {
		return "none"
	}
	return c.Subject.CommonName
}

// A client that asks for no name may get the certificate of the address to which it connects.
func TestCertificateForTheAddress(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1": "sni-address", "127.0.0.9": "kube-apiserver"} {
		_, r := one(t, func(w *world, o *Options) {
			o.TLSSNICertKeys = []cliflag.NamedCertKey{w.sniPair("address", []string{"localhost"}, address)}
		})
		got, _, err := r.handshake(func(c *tls.Config) { c.ServerName = "127.0.0.1" }) // crypto/tls does not send it, because an address is not a name (RFC 6066, 3)
		if err != nil || got.Subject.CommonName != want {
			t.Errorf("a certificate for %s: %s, error %v; want %s", address, subjectOf(got), err, want)
		}
	}
}

// The certificates are read again when their files change. A certificate and a key that do not
// belong together change nothing.
func TestCertificatesForNamesAreReadAgain(t *testing.T) {
	_, r := one(t, func(w *world, o *Options) {
		o.TLSSNICertKeys = []cliflag.NamedCertKey{w.sniPair("a", []string{"a.example"}), w.sniPair("b", []string{"b.example"})}
	})
	serial := func(name string) string {
		t.Helper()
		got, _, err := r.handshake(func(c *tls.Config) { c.ServerName = name })
		if err != nil {
			t.Fatal(err)
		}
		return got.SerialNumber.String()
	}
	a, b := serial("a.example"), serial("b.example")
	next := r.ca.issue(subject{name: "sni-b", dns: []string{"b.example", "c.example"}})
	writeFile(t, r.dir, "sni-a.crt", next.cert) // without its key
	next.write(t, r.dir, "sni-b")
	await(t, "the new certificate is shown", func() bool { return serial("b.example") != b })
	if got := serial("a.example"); got != a {
		t.Error("a certificate without its key replaced the last one")
	}
	if got := serial("c.example"); got != serial("b.example") {
		t.Error("a name of the new certificate is not known")
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	versions := []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13}
	for flag, least := range map[string]uint16{
		"": tls.VersionTLS12, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
	} {
		_, r := one(t, func(_ *world, o *Options) { o.TLSMinVersion = flag })
		for _, version := range versions {
			_, state, err := r.handshake(func(c *tls.Config) { c.MaxVersion = version })
			if accepted := err == nil; accepted != (version >= least) || accepted && state.Version != version {
				t.Errorf("--tls-min-version %q, a client of %s: %v", flag, tls.VersionName(version), err)
			}
		}
	}
}

func TestCipherSuitesThatAreNotListedAreRefused(t *testing.T) {
	allowed := []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"}
	_, r := one(t, func(_ *world, o *Options) { o.TLSCipherSuites = allowed })
	for _, suite := range tls.CipherSuites() {
		if !strings.Contains(suite.Name, "_ECDSA_") || !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue // the key does not belong to the certificate
		}
		_, state, err := r.handshake(func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{suite.ID} })
		if want := slices.Contains(allowed, suite.Name); (err == nil) != want || err == nil && state.CipherSuite != suite.ID {
			t.Errorf("%s: %v, want it accepted: %t", suite.Name, err, want)
		}
	}
	if _, _, err := r.handshake(func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }); err != nil {
		t.Errorf("TLS 1.3, whose cipher suites the flag does not name: %v", err)
	}
}

func TestInsecureChoicesAreWarnings(t *testing.T) {
	w := newWorld(t)
	o := w.options("a", nil)
	o.Listener = listen(t)
	defer o.Listener.Close()
	o.TLSMinVersion = "VersionTLS11"
	o.TLSCipherSuites = []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA"}
	c, err := o.complete(time.Now())
	if err != nil || len(c.warnings) != 2 || !strings.Contains(c.warnings[0], "VersionTLS11") || !strings.Contains(c.warnings[1], "RC4") {
		t.Errorf("error %v, warnings %q, want two", err, c.warnings)
	}
}
