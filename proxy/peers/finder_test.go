package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// places has the names in the certificate at each address.
type places struct {
	mu    sync.Mutex
	names map[string][]string
	asked int
}

func (p *places) identify(_ context.Context, address string) (*x509.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	names, ok := p.names[address]
	if !ok {
		return nil, errors.New("connection refused")
	}
	ip, _, _ := net.SplitHostPort(address)
	return &x509.Certificate{DNSNames: append([]string{"kubernetes.default.svc"}, names...), IPAddresses: []net.IP{net.ParseIP(ip)}}, nil
}

func (p *places) move(address string, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names[address] = names; len(names) == 0 {
		delete(p.names, address)
	}
}

// search is a finder with a roster. The roster has the servers a, b and c without keys, on hosts
// with the given names, and the server "self" on host-self.
type search struct {
	*finder
	*places
	roster *script
	at     time.Time
	log    bytes.Buffer
}

func newSearch() *search {
	s := &search{places: &places{names: map[string][]string{}}, roster: newScript(RosterConfig{}), at: epoch}
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	s.finder = &finder{
		leases:   &leaseWatch{log: log, synced: true, roster: s.roster.Roster, tell: func([]proxy.Event) {}},
		identify: s.places.identify, port: 6443, log: log,
	}
	for id, host := range map[proxy.ServerID]string{"a": "host-a", "b": "host-b", "c": "host-c", "self": "host-self", "unnamed": ""} {
		s.roster.Identity(IdentityLease{ID: id, Holder: "h", Renewed: epoch, Host: host}, epoch)
	}
	s.roster.Changes()
	return s
}

func (s *search) proxied(id proxy.ServerID, address string) {
	s.roster.keyOf(id, address)
	s.roster.Changes()
}

// lists makes 192.0.2.1 and so on the only addresses of kube-apiservers. last are the last octets.
func (s *search) lists(last ...string) {
	s.listed = nil
	for _, l := range last {
		s.list(master("192.0.2." + l))
	}
}

// finds calls look one second later, and returns the last octets of the addresses that it found.
func (s *search) finds() map[proxy.ServerID]string {
	s.at = s.at.Add(time.Second)
	s.look(context.Background(), s.at)
	found := map[proxy.ServerID]string{}
	for id, m := range s.roster.members {
		if m.reported.direct {
			found[id] = strings.TrimSuffix(strings.TrimPrefix(m.reported.address, "192.0.2."), ":6443")
		}
	}
	return found
}

func TestFinder(t *testing.T) {
	none := map[proxy.ServerID]string{}
	for name, tc := range map[string]struct {
		do   func(*search)
		want map[proxy.ServerID]string
	}{
		"by the names in certificates": {func(s *search) {
			s.lists("1", "2", "3")
			s.move("192.0.2.1:6443", "host-b")
			s.move("192.0.2.2:6443", "other", "host-a")
		}, map[proxy.ServerID]string{"a": "2", "b": "1"}},
		"not by a name that nearly fits": {func(s *search) {
			s.lists("1", "2", "3")
			s.move("192.0.2.1:6443", "host-a2", "xhost-a")
			s.move("192.0.2.2:6443", "host-a.example")
			s.move("192.0.2.3:6443", "host", "")
		}, none},
		"not by a certificate for several": {func(s *search) {
			s.lists("1", "2")
			s.move("192.0.2.1:6443", "host-a", "host-b")
			s.move("192.0.2.2:6443", "host-c")
		}, map[proxy.ServerID]string{"c": "2"}},
		"not by one for this server too": {func(s *search) { s.lists("1"); s.move("192.0.2.1:6443", "host-a", "host-self") }, none},
		"not by one for a server that has a proxy too": {func(s *search) {
			s.proxied("b", "192.0.2.9:6443")
			s.lists("1")
			s.move("192.0.2.1:6443", "host-a", "host-b")
		}, none},
		"not a server with a proxy": {func(s *search) {
			s.proxied("b", "192.0.2.1:6443")
			s.lists("1", "2")
			s.move("192.0.2.1:6443", "host-b")
		}, none},
		"not a server that has ended": {func(s *search) {
			s.roster.IdentityGone("a", epoch)
			s.roster.Changes()
			s.lists("1")
			s.move("192.0.2.1:6443", "host-a")
		}, none},
		"not after the key was removed": {func(s *search) {
			s.lists("1")
			s.unlist(cache.ObjectName{Name: "192.0.2.1"})
			s.move("192.0.2.1:6443", "host-a")
		}, none},
		"not after the key lost its address": {func(s *search) {
			s.lists("1")
			s.list(&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "192.0.2.1"}})
			s.move("192.0.2.1:6443", "host-a")
		}, none},
		"not an invalid address": {func(s *search) {
			s.list(master("0.0.0.0"))
			s.list(master("not an address"))
			s.move("0.0.0.0:6443", "host-b")
		}, none},
		"not by a name at two addresses": {func(s *search) {
			s.lists("2", "1")
			s.move("192.0.2.1:6443", "host-a")
			s.move("192.0.2.2:6443", "host-a")
		}, none},
		"whatever leases are made up for names that all have": {func(s *search) {
			s.roster.Identity(IdentityLease{ID: "madeup", Holder: "h", Renewed: epoch, Host: "kubernetes.default.svc"}, epoch)
			s.lists("1", "2")
			s.move("192.0.2.1:6443", "host-a")
			s.move("192.0.2.2:6443", "host-b")
		}, map[proxy.ServerID]string{"a": "1", "b": "2"}},
		"whatever lease is made up for its IP address": {func(s *search) {
			s.roster.Identity(IdentityLease{ID: "madeup", Holder: "h", Renewed: epoch, Host: "192.0.2.1"}, epoch)
			s.lists("1")
			s.move("192.0.2.1:6443", "host-a")
		}, map[proxy.ServerID]string{"a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSearch()
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.finds()); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// A found address stays until there is new knowledge of the server or of the address.
func TestFinderKeepsAndForgets(t *testing.T) {
	const here = "192.0.2.1:6443"
	kept := map[proxy.ServerID]string{"a": "1"}
	for name, tc := range map[string]struct {
		do   func(*search)
		want map[proxy.ServerID]string
	}{
		"nothing":                     {func(*search) {}, kept},
		"it does not answer":          {func(s *search) { s.move(here) }, kept},
		"it is no longer listed":      {func(s *search) { s.lists() }, kept},
		"neither":                     {func(s *search) { s.lists(); s.move(here) }, kept},
		"another server is there":     {func(s *search) { s.move(here, "host-b") }, map[proxy.ServerID]string{"b": "1"}},
		"another, and it has a proxy": {func(s *search) { s.proxied("b", here); s.move(here, "host-b") }, map[proxy.ServerID]string{}},
		"it has moved": {func(s *search) { s.lists("2"); s.move(here, "x"); s.move("192.0.2.2:6443", "host-a") },
			map[proxy.ServerID]string{"a": "2"}},
		"it has a proxy": {func(s *search) { s.proxied("a", here) }, map[proxy.ServerID]string{}},
		"it has ended":   {func(s *search) { s.roster.IdentityGone("a", epoch); s.roster.Changes() }, map[proxy.ServerID]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSearch()
			s.lists("1")
			s.move(here, "host-a")
			if diff := cmp.Diff(kept, s.finds()); diff != "" {
				t.Fatalf("at first (-want +got):\n%s", diff)
			}
			tc.do(s)
			s.at = s.at.Add(confirmEvery)
			if diff := cmp.Diff(tc.want, s.finds()); diff != "" {
				t.Errorf("later (-want +got):\n%s", diff)
			}
		})
	}
}

// The finder dials no address while every server is known.
func TestFinderAsksOnlyIfItMust(t *testing.T) {
	s := newSearch()
	s.proxied("a", "192.0.2.7:6443")
	s.lists("1", "2")
	s.move("192.0.2.1:6443", "host-a")
	s.move("192.0.2.2:6443", "host-b")
	if diff := cmp.Diff(map[proxy.ServerID]string{"b": "2"}, s.finds()); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	s.proxied("c", "192.0.2.3:6443")
	asked := s.asked
	if s.finds(); s.asked != asked {
		t.Error("addresses were asked a second after all had been found")
	}
	s.at = s.at.Add(confirmEvery)
	if s.finds(); s.asked == asked {
		t.Error("a found address is not confirmed")
	}
	s.proxied("b", "192.0.2.2:6443")
	s.finds()
	asked, s.at = s.asked, s.at.Add(time.Hour)
	if s.finds(); s.asked != asked {
		t.Error("addresses were asked although every server has a proxy")
	}
}

// The finder searches at once if other servers lack a proxy than were found, and not if the same
// do.
func TestFinderSearchesAtOnce(t *testing.T) {
	appears := func(s *search, id proxy.ServerID) {
		s.roster.Identity(IdentityLease{ID: id, Holder: "h", Renewed: epoch, Host: "host-" + string(id)}, epoch)
		s.roster.Changes()
	}
	for name, tc := range map[string]struct {
		do   func(*search)
		asks bool
		want map[proxy.ServerID]string
	}{
		"the same":              {func(*search) {}, false, map[proxy.ServerID]string{"a": "1", "b": "2"}},
		"one fewer":             {func(s *search) { s.proxied("a", "192.0.2.1:6443") }, true, map[proxy.ServerID]string{"b": "2"}},
		"one more":              {func(s *search) { appears(s, "d") }, true, map[proxy.ServerID]string{"a": "1", "b": "2", "d": "4"}},
		"as many, one is other": {func(s *search) { s.proxied("a", "192.0.2.1:6443"); appears(s, "d") }, true, map[proxy.ServerID]string{"b": "2", "d": "4"}},
		"none": {func(s *search) { s.proxied("a", "192.0.2.1:6443"); s.proxied("b", "192.0.2.2:6443") }, false,
			map[proxy.ServerID]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSearch()
			s.proxied("c", "192.0.2.3:6443")
			s.lists("1", "2", "4")
			s.move("192.0.2.1:6443", "host-a")
			s.move("192.0.2.2:6443", "host-b")
			s.move("192.0.2.4:6443", "host-d")
			s.finds()
			asked := s.asked
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.finds()); diff != "" {
				t.Errorf("a second later (-want +got):\n%s", diff)
			}
			if asks := s.asked != asked; asks != tc.asks {
				t.Errorf("addresses were asked: %t, want %t", asks, tc.asks)
			}
		})
	}
}

// A certificate for several servers is a configuration error. The log says this once.
func TestFinderLogsAmbiguousCertificates(t *testing.T) {
	s := newSearch()
	s.lists("1")
	s.move("192.0.2.1:6443", "host-a", "host-b")
	for range 3 {
		s.finds()
	}
	if got := s.log.String(); strings.Count(got, "192.0.2.1:6443") != 1 || !strings.Contains(got, "valid for several") {
		t.Errorf("logged %q", got)
	}
}

// The keys are watched, because addresses may come later.
func TestFinderWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearch()
		s.move("192.0.2.1:6443", "host-a")
		s.move("192.0.2.2:6443", "host-b")
		etcd := newFakeEtcd(t)
		etcd.masters.Add(master("192.0.2.2"))
		defer start(t, func(ctx context.Context) error {
			return s.run(ctx, etcd.Masters(), func(err error) { t.Error(err) })
		})()
		found := func(id proxy.ServerID) string {
			s.leases.mu.Lock()
			defer s.leases.mu.Unlock()
			return s.roster.members[id].reported.address
		}
		time.Sleep(3 * time.Second)
		if a, b := found("a"), found("b"); a != "" || b != "192.0.2.2:6443" {
			t.Errorf("found at %q and %q", a, b)
		}
		etcd.masters.Add(master("192.0.2.1"))
		time.Sleep(3 * time.Second)
		if got := found("a"); got != "192.0.2.1:6443" {
			t.Errorf("found at %q, want where it is listed", got)
		}
	})
}
