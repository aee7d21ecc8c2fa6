package lifecycle

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// gateOnSince is the first version whose feature gate is on by default. A server that emulates an
// older version has the default of that version. Source: UnknownVersionInteroperabilityProxy in
// k8s.io/apiserver/pkg/features/kube_features.go.
const gateOnSince = "v1.36"

// Configured returns the configuration in the flags of a server: those of its kube-apiserver and of
// its sidecar, if it has one. It leaves Server, Incarnation and At empty.
func Configured(version string, setup *scenario.Setup, apiserver, sidecar []string) history.Configuration {
	own := flagsOf(apiserver)
	c := history.Configuration{Setup: setup.String(), Proxy: history.ProxyOff, Emulates: own.value("emulated-version")}
	if own.gate(scenario.Gate, defaultGate(version, c.Emulates)) {
		c.Proxy = history.ProxyOwn
	}
	for _, list := range own["runtime-config"] {
		for what := range strings.SplitSeq(list, ",") {
			if groupVersion, off := strings.CutSuffix(what, "=false"); off {
				c.Without = append(c.Without, groupVersion)
			}
		}
	}
	slices.Sort(c.Without)
	facing := own
	if len(sidecar) > 0 {
		c.Proxy, facing = history.ProxySidecar, flagsOf(sidecar)
	}
	if ca := facing.value("peer-ca-file"); ca != "" {
		c.PeerCA = path.Base(ca)
	}
	c.PeerIP, c.PeerPort = facing.value("peer-advertise-ip"), facing.value("peer-advertise-port")
	c.AdvertiseIP, c.Port = facing.value("advertise-address"), facing.value("secure-port")
	if setup != nil {
		c.SharesHost = setup.HostnameOf
	}
	return c
}

// defaultGate reports whether the feature is on if no flag sets it.
func defaultGate(version, emulates string) bool {
	behaves := version
	if emulates != "" {
		behaves = "v" + emulates
	}
	return semver.Compare(semver.MajorMinor(behaves), gateOnSince) >= 0
}

// flags are the values of each flag of a command line, in order.
type flags map[string][]string

func flagsOf(args []string) flags {
	all := flags{}
	for _, arg := range args {
		if flag, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, _ := strings.Cut(flag, "=")
			all[name] = append(all[name], value)
		}
	}
	return all
}

// value returns the value of a flag. If the flag is given several times, the last one counts.
func (f flags) value(name string) string {
	if all := f[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// gate reports whether --feature-gates switches a feature on. It returns otherwise if the flag does
// not name the feature.
func (f flags) gate(name string, otherwise bool) bool {
	for _, list := range f["feature-gates"] {
		for one := range strings.SplitSeq(list, ",") {
			if gate, value, _ := strings.Cut(one, "="); gate == name {
				otherwise = value == "true"
			}
		}
	}
	return otherwise
}

// configured records the content of the flags of an incarnation. The flags are unknown if another
// program has started the server.
func (s *Server[P]) configured(i *Incarnation[P], programs []Program[P]) {
	var lines [2][]string
	for n, program := range programs[:min(len(programs), len(lines))] {
		lines[n] = program.Args
	}
	if len(lines[0]) == 0 {
		return
	}
	c := Configured(i.Version, s.Setup(), lines[0], lines[1])
	c.Server, c.Incarnation, c.At = s.Name, i.Number, s.Recorder.Now()
	s.Recorder.Configuration(c)
}
