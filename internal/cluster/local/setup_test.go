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

	"github.com/skewproof/skewproof/internal/scenario"
)

// A server that emulates another version has the proxy of its own version, whatever the emulated
// version's default is. It has only flags that the emulated version has.
func TestAServerThatEmulatesHasTheFlagsOfBoth(t *testing.T) {
	gate := scenario.Gate + "="
	for _, c := range []struct {
		version, emulated, subject string
		want                       map[string]string
	}{
		{"v1.37.1", "1.36", scenario.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "peer-ca-file": "keys/ca.crt", "requestheader-uid-headers": "X-Remote-Uid"}},
		{"v1.37.1", "1.35", scenario.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "peer-ca-file": "keys/ca.crt", "peer-advertise-port": "6443"}},
		{"v1.36.3", "1.33", scenario.SubjectBuiltin, map[string]string{"feature-gates": gate + "true", "requestheader-uid-headers": "-"}},
		{"v1.37.1", "1.35", scenario.SubjectNone, map[string]string{"feature-gates": gate + "false", "peer-ca-file": "-"}},
		{"v1.37.1", "1.35", scenario.SubjectReference, map[string]string{"feature-gates": gate + "true", "peer-ca-file": "keys/ca.crt"}},
	} {
		p := place(1, "b")
		p.Setup = &scenario.Setup{EmulatedVersion: c.emulated}
		args, err := APIServerArguments(c.version, c.subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		c.want["emulated-version"] = c.emulated
		c.want["min-compatibility-version"] = "-"
		hasFlags(t, args, c.want)
	}
}

// The test checks the effect of every setup on the command lines: flag → value, "-" for a flag that
// must be absent.
func TestSetupsChangeTheFlagsThatTheyAreAbout(t *testing.T) {
	for name, c := range map[string]struct {
		setup scenario.Setup
		want  map[string]string // for the subjects builtin and reference
	}{
		"trusts a stranger": {scenario.Setup{PeerCA: scenario.TrustStranger},
			map[string]string{"peer-ca-file": "keys/stranger-ca.crt", "client-ca-file": "keys/ca.crt"}},
		"has other feature gates": {scenario.Setup{FeatureGates: "A=false,B=true"},
			map[string]string{"feature-gates": scenario.Gate + "=true,A=false,B=true"}},
		"trusts nobody": {scenario.Setup{PeerCA: scenario.TrustMissing},
			map[string]string{"peer-ca-file": "-", "feature-gates": scenario.Gate + "=true"}},
		"shows an expired certificate": {scenario.Setup{Serving: scenario.CertificateExpired},
			map[string]string{"tls-cert-file": "keys/serving-b-expired.crt", "tls-private-key-file": "keys/serving-b-expired.key"}},
		"a certificate for another name": {scenario.Setup{Serving: scenario.CertificateOther},
			map[string]string{"tls-cert-file": "keys/serving-b-other.crt"}},
		"a stranger's front proxy": {scenario.Setup{FrontProxy: scenario.CertificateStranger},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-stranger.crt", "requestheader-allowed-names": "front-proxy-client",
				"requestheader-client-ca-file": "keys/front-proxy-ca.crt"}},
		"an expired front proxy": {scenario.Setup{FrontProxy: scenario.CertificateExpired},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-expired.crt"}},
		"a front proxy that only it allows": {scenario.Setup{FrontProxy: scenario.CertificateOther},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-other.crt", "requestheader-allowed-names": "front-proxy-client,front-proxy-of-another"}},
		"a new front proxy": {scenario.Setup{FrontProxy: scenario.CertificateRotated},
			map[string]string{"proxy-client-cert-file": "keys/front-proxy-client-b-rotated.crt", "requestheader-allowed-names": "front-proxy-client"}},
		"leads nowhere": {scenario.Setup{Advertise: scenario.AdvertiseWrong},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "6443"}},
		"an address and no port": {scenario.Setup{Advertise: scenario.AdvertiseIP},
			map[string]string{"peer-advertise-ip": "198.19.254.2", "peer-advertise-port": "-", "advertise-address": "198.19.0.2"}},
		"a port and no address": {scenario.Setup{Advertise: scenario.AdvertisePort},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "6440"}},
		"nothing for peers alone": {scenario.Setup{Advertise: scenario.AdvertiseNothing},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "198.19.0.2"}},
		"nothing at all": {scenario.Setup{Advertise: scenario.AdvertiseHost},
			map[string]string{"peer-advertise-ip": "-", "peer-advertise-port": "-", "advertise-address": "-"}},
		"kubeadm's flags": {scenario.Setup{Flags: scenario.FlagsKubeadm},
			map[string]string{"feature-gates": "-", "peer-ca-file": "-", "peer-advertise-ip": "-", "requestheader-uid-headers": "-", "advertise-address": "198.19.0.2",
				"requestheader-allowed-names": "front-proxy-client"}},
		"an older self": {scenario.Setup{EmulatedVersion: "1.36"}, map[string]string{"emulated-version": "1.36"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, subject := range []string{scenario.SubjectBuiltin, scenario.SubjectReference} {
				p := place(1, "b")
				p.Setup = &c.setup
				args, err := APIServerArguments("v1.37.1", subject, p, testFiles)
				if err != nil {
					t.Fatal(err)
				}
				want := c.want
				if subject == scenario.SubjectReference && c.setup.Flags != "" { // what the reference needs belongs to its installation
					want = map[string]string{"peer-ca-file": "keys/ca.crt", PolicyFlag: subject}
				}
				hasFlags(t, args, want)
			}
		})
	}
}

func TestSetupsThatDecideWhoseProxyAServerHas(t *testing.T) {
	for _, c := range []struct {
		subject string
		setup   scenario.Setup
		want    map[string]string
	}{
		{scenario.SubjectBuiltin, scenario.Setup{Proxy: scenario.Off}, map[string]string{"feature-gates": scenario.Gate + "=false", "peer-ca-file": "-"}},
		{scenario.SubjectReference, scenario.Setup{Proxy: scenario.Off},
			map[string]string{"feature-gates": scenario.Gate + "=false", "peer-ca-file": "-", PolicyFlag: "-"}},
		{scenario.SubjectNone, scenario.Setup{Proxy: scenario.Off}, map[string]string{"feature-gates": scenario.Gate + "=false", "peer-ca-file": "-"}},
		{scenario.SubjectNone, scenario.Setup{Proxy: scenario.On}, map[string]string{"feature-gates": scenario.Gate + "=true", "peer-ca-file": "keys/ca.crt"}},
		{scenario.SubjectReference, scenario.Setup{Plain: true},
			map[string]string{"feature-gates": scenario.Gate + "=true", "peer-ca-file": "keys/ca.crt", PolicyFlag: "-"}},
		{scenario.SubjectNone, scenario.Setup{Plain: true}, map[string]string{"feature-gates": scenario.Gate + "=false"}},
	} {
		p := place(1, "b")
		p.Setup = &c.setup
		args, err := APIServerArguments("v1.37.1", c.subject, p, testFiles)
		if err != nil {
			t.Fatal(err)
		}
		hasFlags(t, args, c.want)
	}
}

func TestAHostHasTheNameThatItsSetupGivesIt(t *testing.T) {
	p := place(1, "b")
	if got := p.hostname(); got != "b" {
		t.Errorf("without a setup: %q", got)
	}
	p.Setup = &scenario.Setup{HostnameOf: "a"}
	if got := p.hostname(); got != "a" {
		t.Errorf("with the name of a: %q", got)
	}
}

// issued makes the certificates of a setup and reads one of them.
func issued(t *testing.T, setup scenario.Setup, name string) (*x509.Certificate, *Cluster, Place) {
	t.Helper()
	c := &Cluster{config: Config{Files: Files{Keys: t.TempDir()}}}
	p := place(1, "b")
	var err error
	if c.authorities, err = credentials([]Place{p}, c.config.Files); err != nil {
		t.Fatal(err)
	}
	f := c.config.Files
	if c.admin, err = newAdminTransport(f.key("admin.crt"), f.key("admin.key")); err != nil {
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
		setup       scenario.Setup
		file        string
		authority   string
		serverName  string
		want, other string // parts of the errors when it is verified with the right authority and with the stranger's; "" means no error
	}{
		"expired":              {scenario.Setup{Serving: scenario.CertificateExpired}, "serving-b-expired", "ca", "kubernetes.default.svc", "expired", ""},
		"a stranger's":         {scenario.Setup{Serving: scenario.CertificateStranger}, "serving-b-stranger", "ca", "kubernetes.default.svc", "unknown authority", ""},
		"another name's":       {scenario.Setup{Serving: scenario.CertificateOther}, "serving-b-other", "ca", "kubernetes.default.svc", "not kubernetes.default.svc", ""},
		"a new one":            {scenario.Setup{Serving: scenario.CertificateRotated}, "serving-b-rotated", "ca", "kubernetes.default.svc", "", ""},
		"an expired proxy":     {scenario.Setup{FrontProxy: scenario.CertificateExpired}, "front-proxy-client-b-expired", "front-proxy-ca", "", "expired", ""},
		"a stranger's proxy":   {scenario.Setup{FrontProxy: scenario.CertificateStranger}, "front-proxy-client-b-stranger", "front-proxy-ca", "", "unknown authority", ""},
		"another proxy's name": {scenario.Setup{FrontProxy: scenario.CertificateOther}, "front-proxy-client-b-other", "front-proxy-ca", "", "", ""},
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
			if c.setup.FrontProxy == scenario.CertificateOther && leaf.Subject.CommonName != otherFrontProxyName {
				t.Errorf("it is for %s", leaf.Subject)
			}
		})
	}
}

// The administrator trusts servers that no other client trusts, but no program that only claims to
// be one of them.
func TestTheAdministratorKnowsEveryCertificateOfAServer(t *testing.T) {
	_, c, p := issued(t, scenario.Setup{Serving: scenario.CertificateExpired}, "serving-b-expired")
	f := c.config.Files
	server := func(name string) *httptest.Server {
		pair, err := tls.LoadX509KeyPair(f.key(name+".crt"), f.key(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != "admin" {
				t.Error("it showed no client certificate")
			}
		}))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // the test causes handshake errors on purpose
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	good, impostor := server(p.serving()), server("admin") // the right authority signed it, but for another purpose
	client := &http.Client{Transport: c.admin}
	defer client.CloseIdleConnections()
	if response, err := client.Get(good.URL); err != nil {
		t.Errorf("the server's own, expired: %v", err)
	} else {
		_ = response.Body.Close()
	}
	if response, err := client.Get(impostor.URL); err == nil || !strings.Contains(err.Error(), "none that this run has issued for a server") {
		t.Errorf("an impostor was let in: %v, %v", response, err)
	}
	shown, err := c.admin.certificateAt(t.Context(), netip.MustParseAddrPort(good.Listener.Addr().String()))
	if err != nil || !strings.Contains(describe(shown), "CN=b by CN=skewproof ca") {
		t.Errorf("shown: %v, %v", shown, err)
	}
}

func TestADecoyCountsWhoDialsItAndResetsTheConnection(t *testing.T) {
	a, err := newDecoy(netip.MustParseAddrPort("127.0.0.1:0"), func(addr netip.Addr) string { return "from " + addr.String() })
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for range 3 {
		conn, err := net.Dial("tcp", a.listener.Addr().String())
		if err != nil {
			continue // the connection was reset while it was made
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("it was answered with %d bytes", n)
		}
		_ = conn.Close()
	}
	if got := a.dialledBy("from 127.0.0.1"); got != 3 {
		t.Errorf("%d connections noted, want 3", got)
	}
}
