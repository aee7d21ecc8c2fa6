package sidecar

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each option with a bound, at the last good values, and just beyond them.
func TestBoundsOfOptions(t *testing.T) {
	w := newWorld(t)
	for flag, c := range map[string]struct {
		set       func(o *Options, value int)
		good, bad []int
	}{
		"--secure-port":                            {func(o *Options, v int) { o.SecurePort = v }, []int{1, 443, 65535}, []int{-1, 0, 65536}},
		"--peer-advertise-port":                    {func(o *Options, v int) { o.PeerAdvertisePort = strconv.Itoa(v) }, []int{1, 10, 65535}, []int{-1, 0, 65536}},
		"--shutdown-delay-duration":                {func(o *Options, v int) { o.ShutdownDelayDuration = time.Duration(v) }, []int{0, 1}, []int{-1}},
		"--shutdown-timeout":                       {func(o *Options, v int) { o.ShutdownTimeout = time.Duration(v) }, []int{1}, []int{-1, 0}},
		"--request-timeout":                        {func(o *Options, v int) { o.RequestTimeout = time.Duration(v) }, []int{1}, []int{-1, 0}},
		"--authentication-token-webhook-cache-ttl": {func(o *Options, v int) { o.TokenCacheTTL = time.Duration(v) }, []int{0, 1}, []int{-1}},
		"--certificate-refresh-time":               {func(o *Options, v int) { o.CertificateRefreshTime = time.Duration(v) }, []int{1}, []int{-1, 0}},
		"--tracing-sampling-rate-per-million":      {func(o *Options, v int) { o.TracingRatePerMillion = v }, []int{0, 1, 1e6}, []int{-1, 1e6 + 1}},
		"--http2-max-streams-per-connection":       {func(o *Options, v int) { o.HTTP2MaxStreams = v }, []int{0, 1, 8191}, []int{-1, 8192}},
		"--goaway-chance":                          {func(o *Options, v int) { o.GoawayChance = float64(v) / 100 }, []int{0, 1, 2}, []int{-1, 3}},
	} {
		check := func(value int, good bool) {
			t.Helper()
			o := w.options("bounds", nil)
			c.set(o, value)
			if err := o.Validate(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), flag) {
				t.Errorf("%s, %d: %v; want it good %t", flag, value, err, good)
			}
		}
		for _, value := range c.good {
			check(value, true)
		}
		for _, value := range c.bad {
			check(value, false)
		}
	}
}

// The local server must not be the proxy itself, at whatever address it is named; nor may the admin
// listener be the front door.
func TestAddressesOfTheProxyItself(t *testing.T) {
	w := newWorld(t)
	ip := net.ParseIP
	for _, c := range []struct {
		bind, advertise net.IP
		host            string
		is              bool
	}{
		{nil, nil, "127.0.0.1", true}, {nil, nil, "localhost", true}, {nil, nil, "127.0.0.9", true}, {nil, nil, "[::1]", true},
		{nil, nil, "192.0.2.1", false}, {nil, nil, "host-a", false}, {nil, nil, "localhost.example", false},
		{nil, ip("192.0.2.1"), "192.0.2.1", true}, {nil, ip("192.0.2.1"), "192.0.2.2", false}, {nil, ip("192.0.2.1"), "127.0.0.1", true},
		{ip("0.0.0.0"), nil, "127.0.0.1", true}, {ip("::"), nil, "localhost", true}, {ip("0.0.0.0"), ip("192.0.2.1"), "192.0.2.1", true},
		{ip("127.0.0.1"), nil, "127.0.0.1", true}, {ip("127.0.0.1"), nil, "localhost", true}, {ip("127.0.0.1"), nil, "127.0.0.2", false},
		{ip("127.0.0.2"), nil, "localhost", false}, {ip("127.0.0.2"), nil, "127.0.0.2", true}, {ip("192.0.2.1"), nil, "127.0.0.1", false},
		{ip("192.0.2.1"), nil, "192.0.2.1", true}, {ip("192.0.2.1"), ip("192.0.2.2"), "192.0.2.2", false}, {ip("192.0.2.1"), nil, "host-a", false},
	} {
		for port, same := range map[string]bool{":6443": true, ":6444": false, ":443": false, "": false} {
			for _, path := range []string{"", "/"} {
				o := w.options("itself", nil)
				o.BindAddress, o.AdvertiseAddress, o.AdminBindAddress = c.bind, c.advertise, ""
				o.Upstream = "https://" + c.host + port + path
				err := o.Validate()
				if is := err != nil && strings.Contains(err.Error(), "this is the address that the proxy itself listens on"); is != (c.is && same) || err != nil && !is {
					t.Errorf("--bind-address %s, --advertise-address %s, --upstream %s: %v; want it to be the proxy %t", c.bind, c.advertise, o.Upstream, err, c.is && same)
				}
			}
		}
		o := w.options("itself", nil)
		o.SecurePort, o.BindAddress, o.AdvertiseAddress, o.Upstream = 443, c.bind, c.advertise, "https://"+c.host
		o.AdminBindAddress = ""
		if err := o.Validate(); (err != nil) != c.is {
			t.Errorf("--bind-address %s, --secure-port 443, --upstream %s: %v; want it to be the proxy %t", c.bind, o.Upstream, err, c.is)
		}
		address := net.ParseIP(strings.Trim(c.host, "[]"))
		if address == nil || !address.IsLoopback() {
			continue
		}
		for port, same := range map[string]bool{"6443": true, "6440": false} {
			o := w.options("itself", nil)
			o.BindAddress, o.AdvertiseAddress = c.bind, c.advertise
			o.AdminBindAddress = net.JoinHostPort(address.String(), port)
			if err := o.Validate(); (err != nil) != (c.is && same) {
				t.Errorf("--bind-address %s, --admin-bind-address %s: %v; want it to be the front door %t", c.bind, o.AdminBindAddress, err, c.is && same)
			}
		}
	}
	// A listener that is given has an address of its own.
	o := w.options("itself", nil)
	o.Listener = listen(t)
	defer o.Listener.Close()
	o.SecurePort, o.Upstream, o.AdminBindAddress = 0, "https://127.0.0.1:443", "127.0.0.1:6443"
	if err := o.Validate(); err != nil {
		t.Errorf("with a listener: %v", err)
	}
	o.PeerAdvertiseIP, o.PeerAdvertisePort, o.AdvertiseAddress = "", "", ip("192.0.2.1")
	_, port, _ := net.SplitHostPort(o.Listener.Addr().String())
	c, err := o.complete(time.Now())
	if err != nil || c.advertised != "192.0.2.1:"+port || c.public != "192.0.2.1:"+port {
		t.Errorf("with a listener: advertised %+v, %v; want its port %s", c, err, port)
	}
}

// What a URL of the local server may have: nothing but a scheme, a host and a port.
func TestURLsOfTheLocalServer(t *testing.T) {
	w := newWorld(t)
	for url, want := range map[string]string{
		"https://host-a": "https://host-a", "https://host-a/": "https://host-a", "https://192.0.2.1:6444": "https://192.0.2.1:6444", "https://[2001:db8::1]:6444/": "https://[2001:db8::1]:6444",
		"HTTPS://host-a": "https://host-a",
		"":               "", "host-a": "", "host-a:6444": "", "http://host-a": "", "https:host-a": "", "https://": "", "https:///": "", "https://:6444": "", "https://host-a//": "", "https://host-a/x": "",
		"https://host-a?x": "", "https://host-a/?x=y": "", "https://host-a/#x": "", "https://u@host-a": "", "https://u:p@host-a": "", "https://host-a:x": "",
	} {
		o := w.options("url", nil)
		o.Upstream = url
		c, err := o.complete(time.Now())
		if (err == nil) != (want != "") || err == nil && c.upstream.String() != want {
			t.Errorf("%q: %v; want %q", url, err, want)
		}
	}
}

// A certificate counts from its first moment to its last.
func TestCertificatesCountFromTheirFirstMomentToTheirLast(t *testing.T) {
	w := newWorld(t)
	leaf := w.serving.tls(t).Leaf
	for now, want := range map[time.Time]string{
		leaf.NotBefore: "", leaf.NotAfter: "", leaf.NotBefore.Add(time.Hour): "",
		leaf.NotBefore.Add(-time.Second): "not valid before", leaf.NotAfter.Add(time.Second): "expired",
	} {
		err := validAt(leaf, now, "here")
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "here: ")) {
			t.Errorf("at %s: %v, want %q", now, err, want)
		}
	}
}
