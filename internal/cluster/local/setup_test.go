package local

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/scenarios"
)

// A server that emulates another version has its own proxy, whatever the other's default is, and only flags that the other has.
func TestAServerThatEmulatesHasTheFlagsOfBoth(t *testing.T) {
	gate := scenarios.Gate + "="
	for _, c := range []struct {
		version, emulated, subject string
		want                       map[string]string
	}{
		{"v1.37.1", "1.36", scenarios.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "peer-ca-file": "keys/ca.crt", "requestheader-uid-headers": "X-Remote-Uid"}},
		{"v1.37.1", "1.35", scenarios.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "peer-ca-file": "keys/ca.crt", "peer-advertise-port": "6443"}},
		{"v1.36.3", "1.33", scenarios.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "requestheader-uid-headers": "-"}},
		{"v1.37.1", "1.35", scenarios.SubjectNone, map[string]string{"feature-gates": gate + "false", "peer-ca-file": "-"}},
		{"v1.37.1", "1.35", scenarios.SubjectReference, map[string]string{"feature-gates": gate + "false", "peer-ca-file": "-", "secure-port": "6444"}},
	} {
		p := place(c.subject, 1, "b")
		p.Setup = &scenarios.Setup{EmulatedVersion: c.emulated}
		components, err := Components(c.version, c.subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		c.want["emulated-version"] = c.emulated
		c.want["min-compatibility-version"] = "-"
		hasFlags(t, components[0].Args, c.want)
		if c.subject == scenarios.SubjectReference {
			hasFlags(t, components[1].Args, map[string]string{"emulated-version": "-"})
		}
	}
}

// What every setup makes of the command lines: flag → value, "-" for one that shall be absent.
func TestSetupsChangeTheFlagsThatTheyAreAbout(t *testing.T) {
	for name, c := range map[string]struct {
		setup              scenarios.Setup
		apiserver, sidecar map[string]string // of the subjects builtin and reference
	}{
		"trusts a stranger": {scenarios.Setup{PeerCA: scenarios.TrustStranger},
			map[string]string{"peer-ca-file": "keys/stranger-ca.crt", "client-ca-file": "keys/ca.crt"}, map[string]string{"peer-ca-file": "keys/stranger-ca.crt"}},
		"trusts nobody": {scenarios.Setup{PeerCA: scenarios.TrustMissing},
			map[string]string{"peer-ca-file": "-", "feature-gates": scenarios.Gate + "=true"}, map[string]string{"peer-ca-file": "-"}},
		"shows an expired certificate": {scenarios.Setup{Serving: scenarios.CertificateExpired},
			map[string]string{"tls-cert-file": "keys/serving-b-expired.crt", "tls-private-key-file": "keys/serving-b-expired.key"},
			map[string]string{"tls-cert-file": "keys/serving-b-expired.crt"}},
		"a certificate for another name": {scenarios.Setup{Serving: scenarios.CertificateOther},
			map[string]string{"tls-cert-file": "keys/serving-b-other.crt"}, map[string]string{"tls-cert-file": "keys/serving-b-other.crt"}},
		"a stranger's front proxy": {scenarios.Setup{FrontProxy: scenarios.CertificateStranger},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-stranger.crt", "requestheader-allowed-names": "front-proxy-client",
				"requestheader-client-ca-file": "keys/front-proxy-ca.crt"},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-stranger.crt", "requestheader-client-ca-file": "keys/front-proxy-ca.crt"}},
		"an expired front proxy": {scenarios.Setup{FrontProxy: scenarios.CertificateExpired},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-expired.crt"}, map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-expired.crt"}},
		"a front proxy that only it allows": {scenarios.Setup{FrontProxy: scenarios.CertificateOther},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-other.crt", "requestheader-allowed-names": "front-proxy-client,front-proxy-of-another"},
			map[string]string{"proxy-client-key-file": "keys/front-proxy-client-b-other.key", "requestheader-allowed-names": "front-proxy-client,front-proxy-of-another"}},
		"a new front proxy": {scenarios.Setup{FrontProxy: scenarios.CertificateRotated},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-rotated.crt", "requestheader-allowed-names": "front-proxy-client"}, nil},
		"leads nowhere": {scenarios.Setup{Advertise: scenarios.AdvertiseWrong},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "6443"},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "6443"}},
		"an address and no port": {scenarios.Setup{Advertise: scenarios.AdvertiseIP},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "-", "advertise-address": "198.19.0.2"},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "-"}},
		"a port and no address": {scenarios.Setup{Advertise: scenarios.AdvertisePort},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "6440"}, map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "6440"}},
		"nothing for peers alone": {scenarios.Setup{Advertise: scenarios.AdvertiseNothing},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "198.19.0.2"},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "198.19.0.2"}},
		"nothing at all": {scenarios.Setup{Advertise: scenarios.AdvertiseHost},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "-"},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "-"}},
		"kubeadm's flags": {scenarios.Setup{Flags: scenarios.FlagsKubeadm},
			map[string]string{"feature-gates": "-", "peer-ca-file": "-", "peer-advertise-ip": "-", "requestheader-uid-headers": "-", "advertise-address": "198.19.0.2",
				"requestheader-allowed-names": "front-proxy-client"},
			map[string]string{"peer-ca-file": "keys/ca.crt"}},
		"an older self": {scenarios.Setup{EmulatedVersion: "1.36"}, map[string]string{"emulated-version": "1.36"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for subject, want := range map[string]map[string]string{scenarios.SubjectBuiltin: c.apiserver, scenarios.SubjectReference: c.sidecar} {
				p := place(subject, 1, "b")
				p.Setup = &c.setup
				components, err := Components("v1.37.1", subject, p, testFiles)
				if err != nil {
					t.Fatal(err)
				}
				door := components[len(components)-1] // the program that clients and peers meet
				hasFlags(t, door.Args, want)
				if subject == scenarios.SubjectReference {
					// What clients meet is the sidecar's: the certificate behind it is its own affair, and stays good.
					hasFlags(t, components[0].Args, map[string]string{"tls-cert-file": "keys/serving-b.crt"})
				}
			}
		})
	}
}

func TestAServerWhoseProxyIsSwitchedOffIsOneProgramAtTheFrontDoor(t *testing.T) {
	for _, subject := range scenarios.Subjects {
		p := place(subject, 1, "b")
		p.Setup = &scenarios.Setup{Proxy: scenarios.Off}
		components, err := Components("v1.37.1", subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		if len(components) != 1 || components[0].Ready != "https://"+p.Real.String()+"/readyz" {
			t.Errorf("%s: %+v", subject, components)
		}
		hasFlags(t, components[0].Args, map[string]string{"feature-gates": scenarios.Gate + "=false", "secure-port": "6443", "peer-ca-file": "-"})
	}
}

func TestAServerWhoseProxyIsSwitchedOnHasOneInARunWithout(t *testing.T) {
	p := place(scenarios.SubjectNone, 1, "b")
	p.Setup = &scenarios.Setup{Proxy: scenarios.On}
	components, err := Components("v1.37.1", scenarios.SubjectNone, p, testFiles)
	if err != nil {
		t.Fatal(err)
	}
	hasFlags(t, components[0].Args, map[string]string{"feature-gates": scenarios.Gate + "=true", "peer-ca-file": "keys/ca.crt"})
}

func TestAHostHasTheNameThatItsSetupGivesIt(t *testing.T) {
	p := place(scenarios.SubjectBuiltin, 1, "b")
	if got := p.hostname(); got != "b" {
		t.Errorf("without a setup: %q", got)
	}
	p.Setup = &scenarios.Setup{HostnameOf: "a"}
	if got := p.hostname(); got != "a" {
		t.Errorf("with the name of a: %q", got)
	}
}

// issued makes the certificates of a setup and reads one of them.
func issued(t *testing.T, setup scenarios.Setup, name string) (*x509.Certificate, *Cluster, Place) {
	t.Helper()
	c := &Cluster{config: Config{Files: Files{Keys: t.TempDir()}}}
	p := place(scenarios.SubjectBuiltin, 1, "b")
	var err error
	if c.authorities, err = credentials([]Place{p}, c.config.Files); err != nil {
		t.Fatal(err)
	}
	f := c.config.Files
	if c.ways, err = newWays(f.key("admin.crt"), f.key("admin.key"), func(a netip.AddrPort) netip.AddrPort { return a }); err != nil {
		t.Fatal(err)
	}
	p.Setup = &setup
	if err := c.issue(p); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(f.key(name+".crt"), f.key(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf, c, p
}

func TestCertificatesAreWrongInTheOneWayThatIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		setup       scenarios.Setup
		file        string
		authority   string
		serverName  string
		want, other string // in the errors of verifying it by the right authority, and by the stranger's; "" means none
	}{
		"expired":              {scenarios.Setup{Serving: scenarios.CertificateExpired}, "serving-b-expired", "ca", "kubernetes.default.svc", "expired", ""},
		"a stranger's":         {scenarios.Setup{Serving: scenarios.CertificateStranger}, "serving-b-stranger", "ca", "kubernetes.default.svc", "unknown authority", ""},
		"another name's":       {scenarios.Setup{Serving: scenarios.CertificateOther}, "serving-b-other", "ca", "kubernetes.default.svc", "not kubernetes.default.svc", ""},
		"a new one":            {scenarios.Setup{Serving: scenarios.CertificateRotated}, "serving-b-rotated", "ca", "kubernetes.default.svc", "", ""},
		"an expired proxy":     {scenarios.Setup{FrontProxy: scenarios.CertificateExpired}, "front-proxy-client-b-expired", "front-proxy-ca", "", "expired", ""},
		"a stranger's proxy":   {scenarios.Setup{FrontProxy: scenarios.CertificateStranger}, "front-proxy-client-b-stranger", "front-proxy-ca", "", "unknown authority", ""},
		"another proxy's name": {scenarios.Setup{FrontProxy: scenarios.CertificateOther}, "front-proxy-client-b-other", "front-proxy-ca", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			leaf, cluster, _ := issued(t, c.setup, c.file)
			pem, err := os.ReadFile(cluster.config.Files.key(c.authority + ".crt"))
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(pem)
			_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: c.serverName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("verified by %s: %v, want an error about %q", c.authority, err, c.want)
			}
			if c.setup.FrontProxy == scenarios.CertificateOther && leaf.Subject.CommonName != otherFrontProxyName {
				t.Errorf("it is for %s", leaf.Subject)
			}
		})
	}
}

// The administrator is let in by servers that nobody else can trust, and by nobody who merely says to be one.
func TestTheAdministratorKnowsEveryCertificateOfAServer(t *testing.T) {
	_, c, p := issued(t, scenarios.Setup{Serving: scenarios.CertificateExpired}, "serving-b-expired")
	f := c.config.Files
	server := func(name string) *httptest.Server {
		pair, err := tls.LoadX509KeyPair(f.key(name+".crt"), f.key(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != "admin" {
				t.Error("it did not say who it is")
			}
		}))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // that it is not believed is what is tested
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	good, impostor := server(p.serving()), server("admin") // signed by the right authority, for another purpose
	client := &http.Client{Transport: c.ways}
	defer client.CloseIdleConnections()
	if response, err := client.Get(good.URL); err != nil {
		t.Errorf("the server's own, expired: %v", err)
	} else {
		_ = response.Body.Close()
	}
	if response, err := client.Get(impostor.URL); err == nil || !strings.Contains(err.Error(), "none that this run has issued for a server") {
		t.Errorf("an impostor was let in: %v, %v", response, err)
	}
	shown, err := c.ways.shown(t.Context(), netip.MustParseAddrPort(good.Listener.Addr().String()))
	if err != nil || !strings.Contains(describe(shown), "CN=b by CN=skewproof ca") {
		t.Errorf("shown: %v, %v", shown, err)
	}
}

func TestWhoGoesAstrayIsNotedAndTurnedAway(t *testing.T) {
	a, err := newAstray(netip.MustParseAddrPort("127.0.0.1:0"), func(addr netip.Addr) string { return "from " + addr.String() })
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for range 3 {
		conn, err := net.Dial("tcp", a.listener.Addr().String())
		if err != nil {
			continue // turned away before it was let in
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("it was answered with %d bytes", n)
		}
		_ = conn.Close()
	}
	if got := a.by("from 127.0.0.1"); got != 3 {
		t.Errorf("%d connections noted, want 3", got)
	}
}
