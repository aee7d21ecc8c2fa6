// Package pki makes the keys and certificates of one run. Every run has its own authorities. Only
// their owner can read the files of private keys.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Lifetime is the validity of every certificate: longer than any run, and short.
const Lifetime = 48 * time.Hour

// Authority is a certificate authority whose files are Dir/Name.crt and Dir/Name.key.
type Authority struct {
	Dir, Name string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

// Request describes a certificate to issue.
type Request struct {
	CommonName   string
	Organization []string // groups, for a client certificate
	DNSNames     []string
	Addresses    []netip.Addr
	Server       bool // usable by a TLS server
	Client       bool // usable by a TLS client
	// Until is the end of its validity; zero: after [Lifetime]. A time in the past makes an expired
	// certificate.
	Until time.Time
}

// Pair is a certificate and its key on disk.
type Pair struct{ Cert, Key string }

// NewAuthority creates a self-signed authority in dir, which must exist.
func NewAuthority(dir, name string) (*Authority, error) {
	template := newTemplate(pkix.Name{CommonName: "skewproof " + name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a := &Authority{Dir: dir, Name: name, cert: template}
	var err error
	if a.key, err = newKey(); err == nil {
		if a.cert, err = a.sign(template, a.key); err == nil {
			_, err = save(dir, name, a.cert, a.key)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	return a, nil
}

// CertFile returns the file of the authority's own certificate.
func (a *Authority) CertFile() string { return filepath.Join(a.Dir, a.Name+".crt") }

// Issue signs a certificate and writes Dir/name.crt and Dir/name.key.
func (a *Authority) Issue(name string, r Request) (Pair, error) {
	template := newTemplate(pkix.Name{CommonName: r.CommonName, Organization: r.Organization})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.DNSNames = r.DNSNames
	if !r.Until.IsZero() {
		template.NotAfter = r.Until
		template.NotBefore = template.NotBefore.Add(min(0, time.Until(r.Until)))
	}
	for _, address := range r.Addresses {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	}
	if r.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	var pair Pair
	key, err := newKey()
	if err == nil {
		var cert *x509.Certificate
		if cert, err = a.sign(template, key); err == nil {
			pair, err = save(a.Dir, name, cert, key)
		}
	}
	if err != nil {
		return Pair{}, fmt.Errorf("issue certificate %s: %w", name, err)
	}
	return pair, nil
}

// SigningKey creates a key pair without a certificate, such as the one that signs service account
// tokens. Cert is the public key.
func SigningKey(dir, name string) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, name+".pub"), Key: filepath.Join(dir, name+".key")}
	key, err := newKey()
	if err == nil {
		var public []byte
		if public, err = x509.MarshalPKIXPublicKey(&key.PublicKey); err == nil {
			err = errors.Join(writePEM(pair.Cert, "PUBLIC KEY", public), writeKey(pair.Key, key))
		}
	}
	if err != nil {
		return Pair{}, fmt.Errorf("create signing key %s: %w", name, err)
	}
	return pair, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-time.Hour), // because the clock of a server may be a little behind
		NotAfter:  now.Add(Lifetime),
	}
}

// sign signs a certificate for a key. If the template is the authority's own certificate, the
// authority signs itself.
func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func save(dir, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	return pair, errors.Join(writePEM(pair.Cert, "CERTIFICATE", cert.Raw), writeKey(pair.Key, key))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

// writePEM writes a file, also a certificate, that only its owner can read.
func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
