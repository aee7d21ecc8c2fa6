package lifecycle

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/skewproof/skewproof/internal/gates"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Configured returns the configuration in the flags of a server. It leaves Server, Incarnation and
// At empty.
func Configured(release string, setup *scenario.Setup, apiserver []string) history.Configuration {
	own := flagsOf(apiserver)
	c := history.Configuration{Setup: setup.String(), Proxy: history.ProxyOff, Emulates: history.EmulatedMinor(own["emulated-version"]...)}
	if gates.ProxyOn(cmp.Or(c.Emulates, release), own[history.FeatureGates]...) {
		c.Proxy = history.ProxyOwn
	}
	apis := cliflag.ConfigurationMap{}
	for _, list := range own["runtime-config"] {
		_ = apis.Set(list) // returns no error
	}
	for groupVersion, value := range apis {
		if on, err := strconv.ParseBool(value); err == nil && !on {
			c.Without = append(c.Without, groupVersion)
		}
	}
	slices.Sort(c.Without)
	if ca := own.value("peer-ca-file"); ca != "" {
		c.PeerCA = path.Base(ca)
	}
	c.PeerIP, c.PeerPort = own.value("peer-advertise-ip"), own.value("peer-advertise-port")
	c.AdvertiseIP, c.Port = own.value("advertise-address"), own.value("secure-port")
	if setup != nil {
		c.SharesHost = setup.HostnameOf
	}
	return c
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

// configured records the content of the flags of an incarnation. The flags are unknown if another
// program has started the server.
func (s *Server[P]) configured(i *Incarnation[P], program Program[P]) {
	if len(program.Args) == 0 {
		return
	}
	c := Configured(i.Version, s.Setup(), program.Args)
	c.Server, c.Incarnation, c.At = s.Name, i.Number, s.Recorder.Now()
	i.Emulates = c.Emulates // the user's own flags may emulate, too
	s.Recorder.Configuration(c)
}
