package sidecar

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/proxy/peers"
)

// FuzzCommandLine gives the sidecar any flags, one a line, after a valid set of flags. The sidecar
// must name the flags that it refuses, or accept only values that work.
func FuzzCommandLine(f *testing.F) {
	for _, seed := range []string{
		"", "--help", "--", "--secure-port=0", "--upstream=https://[::1]:6444", "--upstream=https://a@b:1/x?y#z", "--peer=b=192.0.2.2:1\n--peer=b=192.0.2.2:1",
		"--policy=alpha-1.28", "--requestheader-username-headers=X-Remote-User,X Y", "--requestheader-uid-headers=",
		"--peer-advertise-ip=192.0.2.1\n--peer-advertise-port=065", "--anonymous-auth=maybe", "--anonymous-auth-paths=/livez,", "--shutdown-timeout=-1s",
		"--client-ca-file=absent", "--requestheader-allowed-names=,", "--advertise-address=::", "--bind-address=ff02::1", "--admin-bind-address=[::1]:6443",
		"--tracing-endpoint=:", "--server-id=a/b", "stray",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		w := newWorld(t)
		o := w.options("a", nil)
		o.AdvertiseAddress = net.IPv4(192, 0, 2, 1)
		flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
		flags.Usage = func() {}
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := flags.Parse(strings.Split(line, "\n")); err != nil {
			return
		}
		for _, file := range []*string{
			&o.TLSCertFile, &o.TLSPrivateKeyFile, &o.UpstreamCAFile, &o.Kubeconfig, &o.PeerCAFile, &o.ProxyClientCert, &o.ProxyClientKey,
			&o.ClientCAFile, &o.RequestHeaderCAFile,
		} {
			if !strings.HasPrefix(*file, w.dir) && *file != "" { // a read from a device could last for ever
				*file = filepath.Join(w.dir, filepath.Clean("/"+*file))
			}
		}
		c, err := o.complete(time.Now())
		if err != nil {
			if c != nil || !strings.Contains(err.Error(), "--") {
				t.Fatalf("complete = %v, with an error that names no flag: %v", c, err)
			}
			return
		}
		if c.upstream.Scheme != "https" || c.upstream.Hostname() == "" || c.upstream.Path != "" || c.upstream.User != nil {
			t.Errorf("the local server is at %q", c.upstream)
		}
		if _, err := peers.ParseAddress(c.advertised); err != nil {
			t.Errorf("peers are told %q: %v", c.advertised, err)
		}
		for _, p := range c.static {
			if p.ID == c.server {
				t.Errorf("%s is its own peer", p.ID)
			}
		}
	})
}
