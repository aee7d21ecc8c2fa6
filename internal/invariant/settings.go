package invariant

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// These are the times of the endpoint lease of a kube-apiserver. Peers use the lease to find the
// server. Source: DefaultPeerEndpointReconcileInterval and DefaultPeerEndpointReconcilerTTL in
// k8s.io/kubernetes/pkg/controlplane/apiserver/peer.go.
const (
	endpointRenewal = 10 * time.Second
	endpointTTL     = 15 * time.Second
)

// These flags set the parts of a configuration whose effect can be seen.
const (
	flagPeerIP      = "--peer-advertise-ip"
	flagPeerPort    = "--peer-advertise-port"
	flagAdvertiseIP = "--advertise-address"
	flagPort        = "--secure-port"
	flagGate        = "--feature-gates"
	flagEmulation   = "--emulated-version"
	flagWithout     = "--runtime-config"
)

// setting is the configuration of one process, together with what the run saw of the process.
type setting struct {
	history.Configuration
	server *server
	ready  []window // times in which the process was ready and not paused
	life   window   // from its start to its end; empty if unknown
	leases []history.Lease
	// reports is the version that the process said at /version. version is its real version.
	reports, version string
	refused          bool // the process ended before it was ready
	// follows is true if an earlier process of the server existed: its lease may still be there.
	follows bool
	// tested is true if some answer shows whether the proxy of the process is off.
	tested bool
	// twins are processes of servers with the same host name at that time. So they share one lease.
	twins []twin
}

// indexSettings joins the configurations of processes with what the run saw of the processes.
func (f *Facts) indexSettings(h *history.History) {
	f.settings = map[process]*setting{}
	latestFirst := func(a, b history.Configuration) int { return -cmp.Compare(a.At, b.At) }
	for _, c := range slices.SortedStableFunc(slices.Values(h.Configurations), latestFirst) {
		s := f.byName[c.Server]
		if s == nil {
			continue
		}
		one := &setting{Configuration: c, server: s, follows: c.Incarnation > 1}
		f.settings[process{c.Server, c.Incarnation}] = one
		up, ended := false, false
		for _, span := range s.line {
			if span.incarnation != c.Incarnation {
				continue
			}
			one.version = cmp.Or(span.version, one.version)
			if span.phase != phaseDown && one.life == (window{}) {
				one.life = span.window
			} else if span.phase != phaseDown {
				one.life.to = span.to
			}
			up, ended = up || span.up, ended || span.phase == phaseStopping
			if span.phase == phaseReady {
				one.ready = append(one.ready, span.window)
			}
		}
		one.refused = ended && !up
	}
	for _, l := range f.lifecycle {
		if one := f.settings[process{l.Server, l.Incarnation}]; one != nil && l.State == history.StateReady {
			one.reports = l.Reports
		}
	}
	for _, l := range slices.SortedFunc(slices.Values(h.Leases), func(a, b history.Lease) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Advertised, b.Advertised))
	}) {
		if one := f.settings[process{l.Server, l.Incarnation}]; one != nil {
			one.leases = append(one.leases, l)
		}
	}
	for _, o := range f.observations {
		if s := f.settingAt(o.asked, o.window); s != nil && !s.tested {
			s.tested = f.showsOff(o)
		}
	}
	f.indexTwins()
}

// settingsInOrder returns the settings in the time order of their processes.
func (f *Facts) settingsInOrder() []*setting {
	var all []*setting
	for _, s := range f.settings {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *setting) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return all
}

// settingAt is the setting of the process of a server that is ready over w, or nil if it is
// unknown.
func (f *Facts) settingAt(s *server, w window) *setting {
	if len(f.settings) == 0 {
		return nil
	}
	span, whole := s.line.during(w)
	if !whole || span.phase != phaseReady {
		return nil
	}
	return f.settings[process{s.name, span.incarnation}]
}

// held is the first time within a lease's record in which the lease must match the flags: the
// process has been ready for long enough, and no fault keeps it from etcd. ok is false if there is
// no such time.
func (f *Facts) held(s *setting, l history.Lease) (w window, ok bool) {
	for i, ready := range s.ready {
		grace := f.bounds.Staleness
		switch {
		case i > 0: // the process was paused; the next renewal restores the lease
			grace += endpointRenewal
		case s.follows && s.Proxy == history.ProxyOff:
			grace += endpointTTL // the lease of the earlier process may still be there
		}
		from := max(l.First, later(ready.from, grace))
		to := min(l.Last, later(ready.to, -1))
		for _, fault := range f.linkFaults(link{s.Server, etcd}, window{beginning, forever}) {
			if fault.Start <= from && later(fault.End, f.bounds.Convergence) >= from {
				from = later(fault.End, f.bounds.Convergence)
			} else if fault.Start > from && fault.Start <= to {
				to = fault.Start - 1
			}
		}
		if from <= to {
			return window{from, to}, true
		}
	}
	return window{}, false
}

// wrongAddress says which flag the host:port in the lease contradicts, and what the flag says. It
// returns "" if there is no contradiction. If servers share a lease, the address of each of them is
// right.
func (s *setting) wrongAddress(advertised string) (flag, want string) {
	for _, twin := range s.twins {
		if flag, _ := twin.notOwn(advertised); flag == "" {
			return "", ""
		}
	}
	return s.notOwn(advertised)
}

func (s *setting) notOwn(advertised string) (flag, want string) {
	host, port, err := net.SplitHostPort(advertised)
	switch {
	case s.Proxy == history.ProxyOff && advertised != "":
		return flagGate, "no address"
	case s.Proxy == history.ProxyOff:
		return "", ""
	case err != nil && s.PeerIP+s.AdvertiseIP != "":
		return cmp.Or(given(flagPeerIP, s.PeerIP), flagAdvertiseIP), cmp.Or(s.PeerIP, s.AdvertiseIP)
	case s.PeerIP != "" && host != s.PeerIP:
		return flagPeerIP, s.PeerIP
	case s.PeerIP == "" && s.AdvertiseIP != "" && host != s.AdvertiseIP:
		return flagAdvertiseIP, s.AdvertiseIP
	case s.PeerPort != "" && port != s.PeerPort:
		return flagPeerPort, "port " + s.PeerPort
	case s.PeerPort == "" && s.Port != "" && err == nil && port != s.Port:
		return flagPort, "port " + s.Port
	}
	return "", ""
}

func given(flag, value string) string {
	if value == "" {
		return ""
	}
	return flag
}

// emulates is the minor version that the process must report, such as "1.36".
func (s *setting) emulates() string {
	return cmp.Or(s.Emulates, strings.TrimPrefix(semver.MajorMinor(s.version), "v"))
}

// unseenSettings names the unusual flags whose effect nothing in the history shows. Without the
// effect, the scenario may not have done what it says. A process that refused its flags has shown
// an effect.
func (f *Facts) unseenSettings() []string {
	var out []string
	for _, s := range f.settingsInOrder() {
		if s.refused || len(s.ready) == 0 {
			continue
		}
		unseen := func(flag string) {
			out = append(out, fmt.Sprintf("it was not seen whether %s had an effect on %s (start %d)", flag, s.Server, s.Incarnation))
		}
		looked := slices.ContainsFunc(s.leases, func(l history.Lease) bool { _, ok := f.held(s, l); return ok })
		switch off := s.Proxy == history.ProxyOff; {
		case looked:
		case strings.Contains(s.Setup, "its proxy switched") && !(off && s.tested):
			unseen(flagGate)
		case strings.Contains(s.Setup, "advertising") && !off:
			unseen(cmp.Or(given(flagPeerIP, s.PeerIP), given(flagPeerPort, s.PeerPort), flagAdvertiseIP))
		}
		if s.Emulates != "" && s.reports == "" {
			unseen(flagEmulation)
		}
		shown := func(p served) bool { return p.incarnation == s.Incarnation && p.doc != nil }
		if len(s.Without) > 0 && !slices.ContainsFunc(s.server.served, shown) {
			unseen(flagWithout)
		}
	}
	return out
}

// showsOff reports whether the answer shows if the proxy of the asked server is off. Such an answer
// is merged discovery, or the answer to a request that a proxy would pass on.
func (f *Facts) showsOff(o *observation) bool {
	if doc, ok := f.merged(o.op); ok && doc != nil {
		own := o.asked.servedAt(o.op.Start)
		return own.doc != nil && o.op.End < own.to
	}
	return o.skewed() && routed(o.op) && len(o.hops) > 0 && !o.shared
}

// String names the process for people.
func (s *setting) String() string {
	text := fmt.Sprintf("%s (%s, start %d", s.Server, s.version, s.Incarnation)
	if s.Setup != "" {
		text += ", " + s.Setup
	}
	return text + ")"
}
