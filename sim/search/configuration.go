package search

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// maxSetups is the maximum number of setups in a case.
const maxSetups = 16

// setups are the possible differences between one start of a server and the others: one setting
// that is wrong, half set, missing, or correct but new.
var setups = [...]scenario.Setup{
	{Proxy: scenario.Off},
	{PeerCA: scenario.TrustStranger},
	{PeerCA: scenario.TrustMissing},
	{FrontProxy: scenario.CertificateStranger},
	{FrontProxy: scenario.CertificateExpired},
	{FrontProxy: scenario.CertificateOther},
	{FrontProxy: scenario.CertificateRotated},
	{Serving: scenario.CertificateStranger},
	{Serving: scenario.CertificateExpired},
	{Serving: scenario.CertificateOther},
	{Serving: scenario.CertificateRotated},
	{Advertise: scenario.AdvertiseNothing},
	{Advertise: scenario.AdvertiseHost},
	{Advertise: scenario.AdvertiseIP},
	{Advertise: scenario.AdvertisePort},
	{Advertise: scenario.AdvertiseWrong},
	{Flags: scenario.FlagsKubeadm},
	{Goaway: scenario.On},
	{Serving: scenario.CertificateRotated, FrontProxy: scenario.CertificateRotated},
	{PeerCA: scenario.TrustStranger, Advertise: scenario.AdvertiseWrong},
}

// setup draws a setup for a server that starts as a version; nil if the case has no room for it.
func (g *Generator) setup(version string) *scenario.Setup {
	if len(g.setups) == maxSetups {
		return nil
	}
	s := setups[g.fault(len(setups))]
	if g.chance(4) { // it serves the resources of an older version
		if older := g.emulable(version); older != "" {
			s = scenario.Setup{EmulatedVersion: older}
		}
	}
	if g.chance(6) { // it serves on when it is stopped
		s = scenario.Setup{ShutdownDelay: scenario.LongDrain, WatchTermination: scenario.LongDrain * time.Duration(g.fault(2))}
	}
	g.setups = append(g.setups, s)
	return &g.setups[len(g.setups)-1]
}

// emulable returns a minor version that a server of the version can emulate. The simulator knows
// the release of this minor version only if a server of the case begins with it. If there is none,
// emulable returns "".
func (g *Generator) emulable(version string) string {
	at := slices.Index(g.versions, release.Of(version))
	for _, s := range g.c.Servers {
		if other := slices.Index(g.versions, s.Version); other >= 0 && other < at {
			return g.minors[other]
		}
	}
	return ""
}

// configure restarts a server with a setup, or without its present one.
func (g *Generator) configure(server int) {
	name := g.names[server]
	step := scenario.Step{Action: scenario.Restart, Server: name}
	if g.state.Setup(name) == nil || g.chance(2) {
		step.Setup = g.setup(g.versions[g.version(server)])
	}
	if !g.add(step) {
		step.Action = scenario.Start
		g.add(step)
	}
	if step.Setup.Drain() > 0 { // its effect shows when the server stops, and its peers know it by then
		g.add(scenario.Step{Action: scenario.Soak, For: soaks[0]})
		g.add(scenario.Step{Action: scenario.Stop, Server: name})
	}
}

// reduced returns, in one of 24 cases, the version with one of its group versions switched off, and
// otherwise the version itself. A definition would bring such a group version back, so no case has
// both.
func (g *Generator) reduced(version int) string {
	if all := g.partial[version]; len(all) > 0 && g.chance(24) && !g.defines {
		g.reduces = true
		return all[g.fault(len(all))]
	}
	return g.versions[version]
}

// partialVersions are the versions of a spec with one group version of a skewed resource switched
// off (--runtime-config).
func partialVersions(versions []string, t targets) [][]string {
	all := make([][]string, len(versions))
	for _, one := range t.skewed {
		for i, v := range versions {
			if !one.served.has(i) || one.subresource != "" || one.gvr.Group == "" || v != release.Of(v) {
				continue
			}
			if name := v + "+without." + one.gvr.Group + "." + one.gvr.Version; !slices.Contains(all[i], name) {
				all[i] = append(all[i], name)
			}
		}
	}
	return all
}
