package sidecar

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
)

// Whichever file changes, alone or with others, everything that was made from the files is made
// again, once, and from the new contents of all of them.
func TestWhichFilesAreReadAgain(t *testing.T) {
	w := newWorld(t)
	o := w.options("reload", nil)
	o.Upstream = "https://127.0.0.1:1"
	for _, name := range []string{"first", "second"} {
		cert, key := w.ca.issue(subject{name: name, dns: []string{name + ".example"}}).write(t, w.dir, "sni-"+name)
		o.TLSSNICertKeys = append(o.TLSSNICertKeys, cliflag.NamedCertKey{CertFile: cert, KeyFile: key})
	}
	// The authorities are files of their own, unlike in other tests.
	for name, file := range map[string]*string{"client": &o.ClientCAFile, "peer": &o.PeerCAFile, "upstream": &o.UpstreamCAFile} {
		*file = writeFile(t, w.dir, name+".crt", w.ca.pem)
	}
	c, err := o.complete(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	creds := c.credentials
	renewAuthority := func(file string) func() {
		return func() { // a further authority
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Dir(file), filepath.Base(file), append(old, newAuthority(t, "further").pem...))
		}
	}
	renewPair := func(by *authority, cert string) func() {
		return func() {
			by.issue(subject{name: "front-proxy-client", dns: []string{peerServerName}}).write(t, filepath.Dir(cert), strings.TrimSuffix(filepath.Base(cert), ".crt"))
		}
	}
	version := map[string]func() any{
		"serving": func() any { return creds.serving.current.Load() }, "proxy client": func() any { return creds.proxyClient.current.Load() },
		"first SNI": func() any { return creds.sni[0].current.Load() }, "second SNI": func() any { return creds.sni[1].current.Load() },
		"clients": func() any { return creds.clientCA.pool() }, "front proxies": func() any { return creds.requestHeaderCA.pool() },
		"peers": func() any { return creds.peerCA.pool() }, "upstream": func() any { return creds.upstreamCA.pool() },
	}
	renew := map[string]func(){
		"serving": renewPair(w.ca, o.TLSCertFile), "proxy client": renewPair(w.frontCA, o.ProxyClientCert),
		"first SNI": renewPair(w.ca, o.TLSSNICertKeys[0].CertFile), "second SNI": renewPair(w.ca, o.TLSSNICertKeys[1].CertFile),
		"clients": renewAuthority(o.ClientCAFile), "front proxies": renewAuthority(o.RequestHeaderCAFile),
		"peers": renewAuthority(o.PeerCAFile), "upstream": renewAuthority(o.UpstreamCAFile),
	}
	stages := [][]string{nil, {"serving", "second SNI"}, {"proxy client", "clients", "upstream"}}
	var all []string
	for name := range version {
		stages, all = append(stages, []string{name}), append(all, name)
	}
	stages = append(stages, all, nil)
	synctest.Test(t, func(t *testing.T) {
		calls := [2]int{}
		creds.changed = []func(){func() { calls[0]++ }, func() { calls[1]++ }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); creds.watch(ctx, time.Second, slog.New(slog.DiscardHandler)) }()
		time.Sleep(time.Millisecond)
		for _, stage := range stages {
			before := map[string]any{}
			for name, of := range version {
				before[name] = of()
			}
			calls = [2]int{}
			for _, name := range stage {
				renew[name]()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			want := min(len(stage), 1)
			if calls != [2]int{want, want} {
				t.Errorf("%q changed: told %v times, want %d", stage, calls, want)
			}
			for name, of := range version {
				changes := strings.Contains(";"+strings.Join(stage, ";")+";", ";"+name+";")
				if (before[name] != of()) != changes {
					t.Errorf("%q changed: %s is new %t, want %t", stage, name, before[name] != of(), changes)
				}
			}
		}
		cancel()
		<-ended
	})
}

// A file that cannot be used is logged once, and again after it was good in between. The last good
// contents stay in use.
func TestWhenUnusableFilesAreLogged(t *testing.T) {
	w := newWorld(t)
	file := writeFile(t, w.dir, "ca.crt", w.ca.pem)
	a, err := loadAuthorities("the authorities of a test", file)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	log := slog.New(slog.NewTextHandler(&logged, nil))
	good, other := w.ca.pem, newAuthority(t, "other").pem
	for i, stage := range []struct {
		contents []byte // nil: the file is removed
		changed  bool
		errors   int // in total
		news     int
	}{
		{good, false, 0, 0}, {[]byte("x"), false, 1, 0}, {[]byte("x"), false, 1, 0}, {nil, false, 2, 0}, {nil, false, 2, 0},
		{good, false, 2, 0}, {nil, false, 3, 0}, {other, true, 3, 1}, {other, false, 3, 1}, {[]byte("x"), false, 4, 1}, {good, true, 4, 2},
	} {
		if stage.contents == nil {
			_ = os.Remove(file) // it may be gone
		} else {
			writeFile(t, w.dir, "ca.crt", stage.contents)
		}
		before := a.pool()
		changed := a.reload(log)
		errors, news := strings.Count(logged.String(), "level=ERROR"), strings.Count(logged.String(), "level=INFO")
		if changed != stage.changed || errors != stage.errors || news != stage.news || (a.pool() != before) != stage.changed {
			t.Errorf("stage %d: changed %t, %d errors, %d news; want %t, %d, %d", i+1, changed, errors, news, stage.changed, stage.errors, stage.news)
		}
	}
}
