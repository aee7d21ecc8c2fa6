package peers

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"192.0.2.1:6443", "192.0.2.1:6443"},
		{"[2001:db8::1]:6443", "[2001:db8::1]:6443"},
		{"[2001:DB8:0::1]:6443", "[2001:db8::1]:6443"},
		{"[::ffff:192.0.2.1]:6443", "192.0.2.1:6443"},
		{"127.0.0.1:1", "127.0.0.1:1"},
		{"node-a.example:65535", "node-a.example:65535"},
		{"a:1", "a:1"},
	} {
		got, err := ParseAddress(tc.in)
		if err != nil || got != tc.want {
			t.Errorf("ParseAddress(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	for _, bad := range []string{
		"", ":", ":6443", "192.0.2.1", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:-1", "192.0.2.1:+1", "192.0.2.1:06443",
		"192.0.2.1:https", "0.0.0.0:6443", "[::]:6443", "224.0.0.1:6443", "[ff02::1]:6443", "255.255.255.255:6443", "[fe80::1%eth0]:6443",
		"2001:db8::1:6443", "user@host:6443", "host/path:6443", "host:6443/path", "https://host:6443", "ho st:6443", "host\n:6443", "host\x00:6443",
		"HOST:6443", "-host:6443", "host..example:6443", "300.1.1.1:6443", "2130706433:6443", "host.1:6443", "127.1:6443", "[host]:6443:1",
		"ä:6443", strings.Repeat("a", 254) + ":6443", "host?x:6443", "host#x:6443", "host%2f:6443",
	} {
		if got, err := ParseAddress(bad); err == nil {
			t.Errorf("ParseAddress(%q) = %q; want an error", bad, got)
		} else if got != "" {
			t.Errorf("ParseAddress(%q) = %q with the error %v", bad, got, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"192.0.2.1:6443", "[2001:db8::1]:6443", "node-a.example:65535", "host:0", "[::ffff:1.2.3.4]:1", "a@b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseAddress(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(got, "/@?# \t\r\n%\\") {
			t.Fatalf("ParseAddress(%q) = %q has more than a host and a port", s, got)
		}
		if again, err := ParseAddress(got); err != nil || again != got {
			t.Fatalf("ParseAddress(%q) = %q, which reads as %q, %v", s, got, again, err)
		}
	})
}
