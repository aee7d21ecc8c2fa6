// Package pki makes the keys and certificates of one run. They are not trusted outside the run:
// every run has authorities of its own. Only their owner can read the files of private keys.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Lifetime of every certificate: longer than any run, short enough to be worthless afterwards.
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
	// Until is the end of its validity; zero: after [Lifetime]. One in the past makes a certificate
	// that has expired.
	Until time.Time
}

// Pair is a certificate and its key on disk.
type Pair struct{ Cert, Key string }

// NewAuthority creates a self-signed authority in dir, which must exist.
func NewAuthority(dir, name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: "skewproof " + name})
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a := &Authority{Dir: dir, Name: name, key: key}
	if a.cert, err = sign(template, template, key, key); err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	if _, err := save(dir, name, a.cert, key); err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	return a, nil
}

// CertFile is the file of the authority's own certificate.
func (a *Authority) CertFile() string { return filepath.Join(a.Dir, a.Name+".crt") }

// Issue signs a certificate and writes Dir/name.crt and Dir/name.key.
func (a *Authority) Issue(name string, r Request) (Pair, error) {
	pair, err := a.issue(name, r)
	if err != nil {
		return Pair{}, fmt.Errorf("issue certificate %s: %w", name, err)
	}
	return pair, nil
}

func (a *Authority) issue(name string, r Request) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: r.CommonName, Organization: r.Organization})
	if err != nil {
		return Pair{}, err
	}
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
	cert, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, err
	}
	return save(a.Dir, name, cert, key)
}

// SigningKey creates a key pair without a certificate, such as the one that signs service account
// tokens. Cert is the public key.
func SigningKey(dir, name string) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, fmt.Errorf("create signing key %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return Pair{}, fmt.Errorf("create signing key %s: %w", name, err)
	}
	pair := Pair{Cert: filepath.Join(dir, name+".pub"), Key: filepath.Join(dir, name+".key")}
	if err := writePEM(pair.Cert, "PUBLIC KEY", public); err != nil {
		return Pair{}, err
	}
	return pair, writeKey(pair.Key, key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour), // tolerates a clock that was set back a little
		NotAfter:     now.Add(Lifetime),
	}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func save(dir, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	if err := writePEM(pair.Cert, "CERTIFICATE", cert.Raw); err != nil {
		return Pair{}, err
	}
	return pair, writeKey(pair.Key, key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

// writePEM makes every file readable by its owner only, certificates too: a rule without exceptions
// is safer.
func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
