package sidecar

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	cliflag "k8s.io/component-base/cli/flag"
)

func TestServerIDIsKubeAPIServers(t *testing.T) {
	// Recorded from kube-apiservers v1.36.3 and v1.37.1.
	for host, want := range map[string]string{"a": "apiserver-2tpgmlbwcz6wvzejdfn7mej2p4", "b": "apiserver-jnrjmwo4ppicmwnfyxmuk5l5mi"} {
		if got := serverID(host); got != want {
			t.Errorf("on host %q: %s, want %s", host, got, want)
		}
	}
}

// The error for a wrong option names the flag and says what to do.
func TestWrongOptions(t *testing.T) {
	w := newWorld(t)
	stranger := newAuthority(t, "stranger")
	file := func(name string, content []byte) string { return writeFile(t, w.dir, name, content) }
	serving := func(o *Options, s subject) {
		o.TLSCertFile, o.TLSPrivateKeyFile = w.ca.issue(s).write(t, w.dir, "odd-serving")
	}
	front := func(o *Options, by *authority, s subject) {
		o.ProxyClientCert, o.ProxyClientKey = by.issue(s).write(t, w.dir, "odd-front")
	}
	sni := func(o *Options, value string) {
		var pair cliflag.NamedCertKey
		if err := pair.Set(value); err != nil {
			t.Fatal(err)
		}
		o.TLSSNICertKeys = []cliflag.NamedCertKey{pair}
	}
	good := []string{peerServerName}
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"port 0":                        {func(o *Options) { o.SecurePort = 0 }, "--secure-port 0: want a port from 1 to 65535"},
		"port out of range":             {func(o *Options) { o.SecurePort = 70000 }, "--secure-port 70000"},
		"unknown policy":                {func(o *Options) { o.Policy = "upstream-2.0" }, `--policy: no policy "upstream-2.0": there are`},
		"upstream by http":              {func(o *Options) { o.Upstream = "http://127.0.0.1:6444" }, `--upstream "http://127.0.0.1:6444": want https://`},
		"upstream with a path":          {func(o *Options) { o.Upstream = "https://127.0.0.1:6444/api" }, "and nothing more"},
		"upstream with a password":      {func(o *Options) { o.Upstream = "https://u:p@127.0.0.1:6444" }, "and nothing more"},
		"upstream of nowhere":           {func(o *Options) { o.Upstream = "https://:6444" }, "want https://HOST:PORT"},
		"upstream that is not a URL":    {func(o *Options) { o.Upstream = "https://127.0.0.1:port" }, "--upstream"},
		"upstream is the proxy":         {func(o *Options) { o.Upstream = "https://localhost:6443" }, "the address that the proxy itself listens on"},
		"upstream is the proxy's bind":  {func(o *Options) { o.BindAddress = net.IPv4(127, 0, 0, 9); o.Upstream = "https://127.0.0.9:6443" }, "the proxy itself listens on"},
		"server id":                     {func(o *Options) { o.ServerID = "not a name" }, `--server-id "not a name"`},
		"advertised ip alone":           {func(o *Options) { o.PeerAdvertisePort = "" }, "give both or neither"},
		"advertised port alone":         {func(o *Options) { o.PeerAdvertiseIP = "" }, "give both or neither"},
		"advertised ip is a name":       {func(o *Options) { o.PeerAdvertiseIP = "host-a" }, `--peer-advertise-ip "host-a"`},
		"advertised ip is none":         {func(o *Options) { o.PeerAdvertiseIP = "0.0.0.0" }, "--peer-advertise-ip"},
		"advertised port is none":       {func(o *Options) { o.PeerAdvertisePort = "0" }, "--peer-advertise-port"},
		"advertised port begins with 0": {func(o *Options) { o.PeerAdvertisePort = "06443" }, `--peer-advertise-port "06443"`},
		"advertised ip is broadcast":    {func(o *Options) { o.PeerAdvertiseIP = "255.255.255.255" }, "peers cannot reach this proxy at the address"},
		"advertised port is too great":  {func(o *Options) { o.PeerAdvertisePort = "65536" }, "--peer-advertise-port"},
		"half a peer":                   {func(o *Options) { o.Peers = []string{"apiserver-b"} }, `--peer: read peer "apiserver-b": want id=host:port`},
		"peer without a port":           {func(o *Options) { o.Peers = []string{"apiserver-b=127.0.0.1"} }, "--peer: "},
		"peer twice":                    {func(o *Options) { o.Peers = []string{"b=127.0.0.1:1", "b=127.0.0.1:2"} }, "b is given twice"},
		"peer is the server itself":     {func(o *Options) { o.Peers = []string{o.ServerID + "=127.0.0.1:1"} }, "stands in front of"},
		"admin without a port":          {func(o *Options) { o.AdminBindAddress = "127.0.0.1" }, "--admin-bind-address"},
		"admin for everybody":           {func(o *Options) { o.AdminBindAddress = "0.0.0.0:6440" }, "want a loopback address"},
		"admin is the front door":       {func(o *Options) { o.AdminBindAddress = "127.0.0.1:6443" }, "choose another port"},
		"negative delay":                {func(o *Options) { o.ShutdownDelayDuration = -time.Second }, "--shutdown-delay-duration -1s: want zero or more"},
		"no time to shut down":          {func(o *Options) { o.ShutdownTimeout = 0 }, "--shutdown-timeout 0s: want a duration above zero"},
		"negative cache":                {func(o *Options) { o.TokenCacheTTL = -1 }, "--authentication-token-webhook-cache-ttl -1ns: want zero or more"},
		"no interval for reading files": {func(o *Options) { o.CertificateRefreshTime = 0 }, "--certificate-refresh-time 0s: want a duration above zero"},
		"sampling":                      {func(o *Options) { o.TracingRatePerMillion = 2e6 }, "--tracing-sampling-rate-per-million"},
		"collector":                     {func(o *Options) { o.TracingEndpoint = "collector" }, "--tracing-endpoint"},
		"no user header":                {func(o *Options) { o.RequestHeaderUsername = nil }, "--requestheader-username-headers: want at least one"},
		"another user header":           {func(o *Options) { o.RequestHeaderUsername = []string{"X-User"} }, "X-Remote-User is missing"},
		"odd group header":              {func(o *Options) { o.RequestHeaderGroup = append(o.RequestHeaderGroup, "X Group") }, "not the name of a header"},
		"another uid header":            {func(o *Options) { o.RequestHeaderUID = []string{"X-Uid"} }, "X-Remote-Uid is missing"},
		"no extra prefix":               {func(o *Options) { o.RequestHeaderExtraPrefix = nil }, "--requestheader-extra-headers-prefix"},
		"empty allowed name":            {func(o *Options) { o.RequestHeaderNames = append(o.RequestHeaderNames, " ") }, "--requestheader-allowed-names: an empty name"},
		"no serving certificate":        {func(o *Options) { o.TLSCertFile = "" }, "--tls-cert-file is missing"},
		"no serving key":                {func(o *Options) { o.TLSPrivateKeyFile = "" }, "--tls-private-key-file is missing"},
		"serving certificate not there": {func(o *Options) { o.TLSCertFile = "/none/serving.crt" }, "(--tls-cert-file, --tls-private-key-file): open /none/serving.crt"},
		"serving certificate is none":   {func(o *Options) { o.TLSCertFile = file("empty.crt", nil) }, "read the serving certificate"},
		"key of another certificate":    {func(o *Options) { o.TLSPrivateKeyFile = file("other.key", w.proxies.key) }, "private key does not match public key"},
		"serving name":                  {func(o *Options) { serving(o, subject{dns: []string{"localhost"}}) }, "peers will refuse this certificate, because it does not have the name kubernetes.default.svc"},
		"serving expired":               {func(o *Options) { serving(o, subject{dns: good, notAfter: time.Now().Add(-time.Minute)}) }, "has expired on"},
		"serving not valid yet":         {func(o *Options) { serving(o, subject{dns: good, notYet: true}) }, "is not valid before"},
		"no front-proxy certificate":    {func(o *Options) { o.ProxyClientCert = "" }, "--proxy-client-cert-file is missing"},
		"front-proxy expired": {func(o *Options) {
			front(o, w.frontCA, subject{name: "front-proxy-client", notAfter: time.Now().Add(-time.Minute)})
		}, "--proxy-client-cert-file"},
		"front-proxy of a stranger":  {func(o *Options) { front(o, stranger, subject{name: "front-proxy-client"}) }, "--requestheader-client-ca-file does not vouch for it"},
		"front-proxy name":           {func(o *Options) { front(o, w.frontCA, subject{name: "someone"}) }, `its common name "someone" is not in --requestheader-allowed-names`},
		"no front-proxy authority":   {func(o *Options) { o.RequestHeaderCAFile = "" }, "--requestheader-client-ca-file is missing"},
		"no peer authority":          {func(o *Options) { o.PeerCAFile = "" }, "--peer-ca-file is missing"},
		"authority is none":          {func(o *Options) { o.PeerCAFile = file("key-as-ca.crt", w.proxies.key) }, "read the authorities of peers (--peer-ca-file)"},
		"authority is empty":         {func(o *Options) { o.PeerCAFile = file("empty-ca.crt", nil) }, "read the authorities of peers (--peer-ca-file)"},
		"client authority not there": {func(o *Options) { o.ClientCAFile = "/none/ca.crt" }, "(--client-ca-file): open /none/ca.crt"},
		"SNI certificate not there":  {func(o *Options) { sni(o, "/none/sni.crt,/none/sni.key") }, "(--tls-sni-cert-key): open /none/sni.crt"},
		"SNI certificate without a key": {func(o *Options) { o.TLSSNICertKeys = []cliflag.NamedCertKey{{CertFile: o.TLSCertFile}} },
			"--tls-sni-cert-key is missing"},
		"key of another SNI certificate": {func(o *Options) { sni(o, o.TLSCertFile+","+o.ProxyClientKey) }, "private key does not match public key"},
		"SNI certificate expired": {func(o *Options) {
			cert, key := w.ca.issue(subject{dns: []string{"x"}, notAfter: time.Now().Add(-time.Minute)}).write(t, w.dir, "sni-expired")
			sni(o, cert+","+key)
		}, "has expired on"},
		"SNI certificate for peers": {func(o *Options) {
			cert, key := w.ca.issue(subject{dns: []string{"localhost"}}).write(t, w.dir, "sni-peers")
			sni(o, cert+","+key+":*.default.svc")
		}, "sni-peers.key: peers will refuse this certificate"},
		"TLS version":               {func(o *Options) { o.TLSMinVersion = "1.2" }, `--tls-min-version "1.2": want one of VersionTLS10, VersionTLS11`},
		"cipher suite":              {func(o *Options) { o.TLSCipherSuites = []string{"ROT13"} }, `--tls-cipher-suites "ROT13": want names of `},
		"no cipher suite of HTTP/2": {func(o *Options) { o.TLSCipherSuites = []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"} }, "--tls-cipher-suites: HTTP/2 requires"},
		"negative streams":          {func(o *Options) { o.HTTP2MaxStreams = -1 }, "--http2-max-streams-per-connection -1: want 0 to 8191"},
		"more streams than windows": {func(o *Options) { o.HTTP2MaxStreams = 8192 }, "--http2-max-streams-per-connection 8192: want 0 to 8191"},
		"no time for requests":      {func(o *Options) { o.RequestTimeout = 0 }, "--request-timeout 0s: want a duration above zero"},
		"negative goaway":           {func(o *Options) { o.GoawayChance = -0.001 }, "--goaway-chance -0.001: want 0 to 0.02"},
		"too many goaways":          {func(o *Options) { o.GoawayChance = 0.021 }, "--goaway-chance 0.021: want 0 to 0.02"},
		"kubeconfig not there":      {func(o *Options) { o.Kubeconfig = "/none/config" }, "--kubeconfig: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.options("a", nil)
			if err := o.Validate(); err != nil {
				t.Fatalf("the options are not good to begin with: %v", err)
			}
			test.change(o)
			err := o.Validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate: %v\nwant %q in it", err, test.want)
			}
			var all interface{ Unwrap() []error }
			if errors.As(err, &all) && len(all.Unwrap()) != 1 {
				t.Errorf("one mistake makes %d errors: %v", len(all.Unwrap()), err)
			}
		})
	}
}

func TestAllWrongOptionsAreReportedAtOnce(t *testing.T) {
	o := NewOptions()
	o.SecurePort, o.Policy, o.PeerAdvertiseIP, o.Upstream = -1, "none", "x", "y"
	var all interface{ Unwrap() []error }
	if err := o.Validate(); !errors.As(err, &all) || len(all.Unwrap()) != 10 {
		t.Errorf("Validate: %v\nwant these 4, and 6 missing files", err)
	}
}

func TestCertificateThatPeersMayRefuseIsAWarning(t *testing.T) {
	w := newWorld(t)
	o := w.options("a", nil)
	o.PeerCAFile = writeFile(t, w.dir, "other-ca.crt", newAuthority(t, "other").pem)
	c, err := o.complete(time.Now())
	if err != nil || len(c.warnings) != 1 || !strings.Contains(c.warnings[0], "peers with the same --peer-ca-file will refuse") {
		t.Errorf("error %v, completed %+v; want a warning", err, c)
	}
}

// The advertised address is found in the same order as in kube-apiserver.
func TestAdvertisedAddress(t *testing.T) {
	host := func(bind net.IP) (net.IP, error) {
		switch {
		case bind != nil && !bind.IsUnspecified() && !bind.IsLoopback():
			return bind, nil
		case bind != nil && bind.To4() == nil:
			return net.ParseIP("2001:db8::7"), nil
		}
		return net.IPv4(192, 0, 2, 7), nil
	}
	for _, test := range []struct {
		ip, port, advertise, bind string
		want                      string
	}{
		{"192.0.2.1", "7443", "192.0.2.2", "192.0.2.3", "192.0.2.1:7443"},
		{"2001:db8::1", "7443", "", "", "[2001:db8::1]:7443"},
		{"", "", "192.0.2.2", "192.0.2.3", "192.0.2.2:6443"},
		{"", "", "127.0.0.1", "192.0.2.3", "127.0.0.1:6443"}, // given explicitly, so it is used
		{"", "", "0.0.0.0", "192.0.2.3", "192.0.2.3:6443"},
		{"", "", "", "192.0.2.3", "192.0.2.3:6443"},
		{"", "", "", "0.0.0.0", "192.0.2.7:6443"},
		{"", "", "", "127.0.0.1", "192.0.2.7:6443"},
		{"", "", "", "::", "[2001:db8::7]:6443"},
		{"", "", "", "", "192.0.2.7:6443"},
	} {
		o := NewOptions()
		o.PeerAdvertiseIP, o.PeerAdvertisePort = test.ip, test.port
		o.AdvertiseAddress, o.BindAddress = net.ParseIP(test.advertise), net.ParseIP(test.bind)
		if got, err := o.advertised(host); err != nil || got != test.want {
			t.Errorf("%+v: %s, error %v", test, got, err)
		}
	}
	// A specific bind address is used unchanged. (The default interface depends on the host.)
	if ip, err := utilnet.ResolveBindAddress(net.IPv4(192, 0, 2, 3)); err != nil || !ip.Equal(net.IPv4(192, 0, 2, 3)) {
		t.Errorf("a specific bind address resolves to %s, error %v", ip, err)
	}
	o := NewOptions()
	_, err := o.advertised(func(net.IP) (net.IP, error) { return nil, errors.New("no default routes found") })
	if err == nil || !strings.Contains(err.Error(), "set --peer-advertise-ip and --peer-advertise-port, or --advertise-address") {
		t.Errorf("a host without an interface: %v", err)
	}
}

func TestFlagsSetTheOptions(t *testing.T) {
	o := NewOptions()
	sets := o.Flags()
	all := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	for _, name := range sets.Order {
		all.AddFlagSet(sets.FlagSets[name])
	}
	err := all.Parse([]string{
		"--secure-port=7443", "--bind-address=192.0.2.1", "--requestheader-allowed-names=a,b", "--anonymous-auth=false", "--peer=x=h:1", "--peer=y=h:2",
		"--requestheader-uid-headers=", "--shutdown-delay-duration=5s", "--authentication-token-webhook-cache-ttl=2m",
		"--tls-sni-cert-key=a.crt,a.key", "--tls-sni-cert-key=b.crt,b.key:*.example,b", "--tls-min-version=VersionTLS13", "--tls-cipher-suites=X,Y",
		"--http2-max-streams-per-connection=7", "--request-timeout=3s", "--goaway-chance=0.01",
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.SecurePort != 7443 || !o.BindAddress.Equal(net.IPv4(192, 0, 2, 1)) || len(o.RequestHeaderNames) != 2 || o.AnonymousAuth || len(o.Peers) != 2 ||
		len(o.RequestHeaderUID) != 0 || o.ShutdownDelayDuration != 5*time.Second || o.TokenCacheTTL != 2*time.Minute ||
		len(o.TLSSNICertKeys) != 2 || o.TLSSNICertKeys[1].CertFile != "b.crt" || len(o.TLSSNICertKeys[1].Names) != 2 || o.TLSMinVersion != "VersionTLS13" ||
		len(o.TLSCipherSuites) != 2 || o.HTTP2MaxStreams != 7 || o.RequestTimeout != 3*time.Second || o.GoawayChance != 0.01 {
		t.Errorf("the options are %+v", o)
	}
}

func TestOnlyTheOwnerReadsTheAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.jsonl")
	log, err := openAccessLog(path, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	log.write(&AccessRecord{Path: "/a"})
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, error %v; want mode 600 and a line", info, err)
	}
	if _, err := openAccessLog(t.TempDir()+"/none/access.jsonl", nil); err == nil {
		t.Error("a log in a missing directory was opened")
	}
	var told []error
	broken := &accessLog{out: log.out, report: func(err error) { told = append(told, err) }}
	broken.write(&AccessRecord{})
	broken.write(&AccessRecord{})
	if len(told) != 1 {
		t.Errorf("a failing log was reported %d times, want once", len(told))
	}
}
