package sidecar

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// intermediate makes an authority below another.
func (a *authority) intermediate(name string, notAfter time.Time) *authority {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(a.t), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
	}, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return &authority{t: a.t, cert: cert, key: key}
}

// The verdict about a connection's certificate lasts until the first certificate of its chain
// expires, and not longer. It lasts as long for a connection as for a request without one.
func TestFrontProxiesAreTrustedUntilTheirChainsExpire(t *testing.T) {
	const minute = time.Minute // authorities last for an hour
	for name, c := range map[string]struct {
		leaf, middle time.Duration // middle 0: there is no intermediate
		trusted      time.Duration
	}{
		"a leaf":                   {10 * minute, 0, 10 * minute},
		"a leaf expires first":     {10 * minute, 20 * minute, 10 * minute},
		"a middle expires first":   {20 * minute, 10 * minute, 10 * minute},
		"an authority first":       {90 * minute, 0, 60 * minute},
		"an authority before both": {90 * minute, 80 * minute, 60 * minute},
	} {
		for _, cached := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t, "front-proxy")
				by, chain := ca, []*x509.Certificate{}
				if c.middle > 0 {
					by = ca.intermediate("middle", time.Now().Add(c.middle))
					chain = append(chain, by.cert)
				}
				leaf := by.issue(subject{name: "front-proxy-client", notAfter: time.Now().Add(c.leaf)}).tls(t).Leaf
				chain = append([]*x509.Certificate{leaf}, chain...)
				f := &frontProxies{ca: (&world{t: t}).authoritiesOf(ca), allowed: []string{"front-proxy-client"}}
				r := httptest.NewRequest(http.MethodGet, common, nil)
				r.TLS = &tls.ConnectionState{PeerCertificates: chain}
				if cached {
					r = r.WithContext(withConnection(r.Context(), nil))
				}
				began := time.Now()
				for _, moment := range []struct {
					at   time.Duration
					want bool
				}{{0, true}, {c.trusted / 2, true}, {c.trusted, true}, {c.trusted + time.Second, false}, {2 * c.trusted, false}} {
					time.Sleep(time.Until(began.Add(moment.at)))
					if ok, err := f.verify(r); ok != moment.want || ok != (err == nil) {
						t.Errorf("%s, of a connection %t, after %s: trusted %t, error %v; want %t", name, cached, moment.at, ok, err, moment.want)
					}
				}
			})
		}
	}
}

// The chain of a connection is verified once, and again when the authorities change: then trust may
// be lost, or won.
func TestWhatChangesTheVerdictAboutAConnection(t *testing.T) {
	w := newWorld(t)
	other, strangers := newAuthority(t, "other"), newAuthority(t, "strangers")
	file := writeFile(t, w.dir, "front.crt", w.frontCA.pem)
	bundle, err := loadAuthorities("front proxies", file)
	if err != nil {
		t.Fatal(err)
	}
	f := &frontProxies{ca: bundle, allowed: []string{"front-proxy-client", "another"}}
	requestOf := func(cert issued, ctx context.Context) *http.Request {
		r := httptest.NewRequest(http.MethodGet, common, nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert.tls(t).Leaf}}
		return r.WithContext(ctx)
	}
	plain := httptest.NewRequest(http.MethodGet, common, nil)
	requests := map[string]*http.Request{
		"ours":                         requestOf(w.proxies, withConnection(t.Context(), nil)),
		"ours, of no connection":       requestOf(w.proxies, t.Context()),
		"another's":                    requestOf(other.issue(subject{name: "another"}), withConnection(t.Context(), nil)),
		"a name that is not allowed":   requestOf(w.frontCA.issue(subject{name: "third"}), withConnection(t.Context(), nil)),
		"expired":                      requestOf(w.frontCA.issue(subject{name: "another", notAfter: time.Now().Add(-time.Minute)}), withConnection(t.Context(), nil)),
		"of strangers":                 requestOf(strangers.issue(subject{name: "another"}), withConnection(t.Context(), nil)),
		"without TLS":                  plain,
		"without a client certificate": plain.WithContext(withConnection(t.Context(), nil)),
	}
	requests["without a client certificate"].TLS = &tls.ConnectionState{}
	isError := map[string]bool{"without TLS": false, "without a client certificate": false}
	for _, stage := range []struct {
		bundle  []byte
		trusted string // separated by semicolons
	}{
		{w.frontCA.pem, "ours;ours, of no connection"},
		{append(append([]byte{}, w.frontCA.pem...), other.pem...), "ours;ours, of no connection;another's"},
		{other.pem, "another's"},
		{strangers.pem, "of strangers"},
		{w.frontCA.pem, "ours;ours, of no connection"},
	} {
		writeFile(t, w.dir, "front.crt", stage.bundle)
		if _, err := bundle.refresh(); err != nil {
			t.Fatal(err)
		}
		trusted := ";" + stage.trusted + ";"
		for name, r := range requests {
			for range 2 {
				ok, err := f.verify(r)
				want := strings.Contains(trusted, ";"+name+";")
				fails, said := isError[name]
				if ok != want || (err != nil) != (!want && (!said || fails)) {
					t.Errorf("%s, where %q are trusted: trusted %t, error %v", name, stage.trusted, ok, err)
				}
			}
		}
		for name, r := range requests {
			c, _ := r.Context().Value(connectionKey{}).(*connection)
			if c == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
				continue
			}
			// A good verdict is kept: nothing is verified again on this connection.
			kept := &frontProxies{ca: bundle, allowed: []string{"nobody"}}
			ok, _ := kept.verify(r)
			if want := strings.Contains(trusted, ";"+name+";"); ok != want {
				t.Errorf("%s: trusted %t on the same connection, want %t", name, ok, want)
			}
		}
	}
	if ok, err := (&frontProxies{}).verify(requests["ours"]); ok || err != nil {
		t.Errorf("without authorities: trusted %t, error %v", ok, err)
	}
	if ok, err := (&frontProxies{ca: bundle}).verify(requestOf(w.frontCA.issue(subject{name: "third"}), t.Context())); !ok || err != nil {
		t.Errorf("where every name is allowed: trusted %t, error %v", ok, err)
	}
}
