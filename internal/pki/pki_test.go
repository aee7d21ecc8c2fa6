package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// handshake runs a mutual TLS handshake over loopback and returns the client's error.
func handshake(t *testing.T, server, client Pair, trust, clientCA string, name string) error {
	t.Helper()
	load := func(p Pair) tls.Certificate {
		c, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pool := func(file string) *x509.CertPool {
		pem, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := x509.NewCertPool()
		p.AppendCertsFromPEM(pem)
		return p
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{load(server)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(clientCA),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				_, _ = c.Write([]byte("hello"))
				_ = c.Close()
			}(c)
		}
	}()
	c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{RootCAs: pool(trust), ServerName: name, Certificates: []tls.Certificate{load(client)}})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = io.ReadAll(c) // under TLS 1.3, the first read returns the server's verdict on our certificate
	return err
}

func TestCertificatesAreAcceptedOnlyWhereTheyShould(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority(dir, "other-ca")
	if err != nil {
		t.Fatal(err)
	}
	issue := func(a *Authority, name string, r Request) Pair {
		p, err := a.Issue(name, r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	server := issue(ca, "server", Request{CommonName: "a", Server: true, DNSNames: []string{"kubernetes.default.svc"}, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	client := issue(ca, "client", Request{CommonName: "jane", Organization: []string{"readers"}, Client: true})
	expired := issue(ca, "expired", Request{CommonName: "a", Server: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Until: time.Now().Add(-time.Minute)})
	stranger := issue(other, "stranger", Request{CommonName: "jane", Client: true})

	for name, c := range map[string]struct {
		server, client Pair
		trust, as      string
		want           string // part of the error; "" means no error
	}{
		"by DNS name":                            {server, client, ca.CertFile(), "kubernetes.default.svc", ""},
		"by address":                             {server, client, ca.CertFile(), "127.0.0.1", ""},
		"expired":                                {expired, client, ca.CertFile(), "127.0.0.1", "has expired"},
		"wrong name":                             {server, client, ca.CertFile(), "example.test", "not example.test"},
		"wrong authority":                        {server, client, other.CertFile(), "127.0.0.1", "unknown authority"},
		"client of another authority":            {server, stranger, ca.CertFile(), "127.0.0.1", "certificate required"},
		"a server certificate is not a client's": {server, server, ca.CertFile(), "127.0.0.1", "bad certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := handshake(t, c.server, c.client, c.trust, ca.CertFile(), c.as)
			if c.want == "" && err != nil {
				t.Fatalf("handshake failed: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got error %v, want one about %q", err, c.want)
			}
		})
	}
}

func TestOnlyTheOwnerReadsKeys(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue("client", Request{CommonName: "x", Client: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := SigningKey(dir, "sa"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 6 {
		t.Fatalf("files %v, error %v; want 6 files", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(f), info.Mode().Perm())
		}
	}
}

func TestIssueSaysWhatItCouldNotDo(t *testing.T) {
	_, err := NewAuthority(filepath.Join(t.TempDir(), "missing"), "ca")
	if err == nil || !strings.Contains(err.Error(), "create authority ca") {
		t.Fatalf("got %v, want an error that names the authority", err)
	}
}
