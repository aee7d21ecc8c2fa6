package mutants

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
)

// disobeys returns a defect by which servers do not obey their flags. change reports whether it
// made a difference.
func disobeys(change func(self proxy.ServerID, does *history.Configuration) bool) func(acted func()) sim.Defects {
	return func(acted func()) sim.Defects {
		return sim.Defects{Obeys: func(self proxy.ServerID, told history.Configuration) history.Configuration {
			if change(self, &told) {
				acted()
			}
			return told
		}}
	}
}

// flags are mutants that can only be seen when a flag has an unusual value.
var flags = []mutant{
	{
		part: "flags", name: "own-address-whatever-was-given",
		wrong: "A server tells its peers its own address, whatever it was told to advertise.",
		plant: disobeys(func(_ proxy.ServerID, does *history.Configuration) bool {
			ignored := does.PeerIP != "" && does.PeerIP != does.AdvertiseIP
			does.PeerIP, does.PeerPort = "", ""
			return ignored
		}),
	},
	{
		part: "flags", name: "falls-back-to-a-neighbour",
		wrong: "A server that must advertise no address advertises that of another server.",
		plant: disobeys(func(self proxy.ServerID, does *history.Configuration) bool {
			if does.PeerIP != "" || self == "apiserver-b" {
				return false
			}
			does.AdvertiseIP = "b"
			return true
		}),
	},
	{
		part: "flags", name: "on-though-switched-off",
		wrong: "A server passes requests on although the feature is switched off.",
		plant: disobeys(func(_ proxy.ServerID, does *history.Configuration) bool {
			off := does.Proxy == history.ProxyOff
			does.Proxy = history.ProxyOwn
			return off
		}),
	},
	{
		part: "flags", name: "off-though-switched-on",
		wrong: "A server passes nothing on and advertises no address, although the feature is switched on.",
		plant: disobeys(func(_ proxy.ServerID, does *history.Configuration) bool {
			on := does.Proxy != history.ProxyOff
			does.Proxy = history.ProxyOff
			return on
		}),
	},
	{
		part: "flags", name: "emulates-nothing",
		wrong: "A server behaves like its own version, whatever version it must emulate.",
		plant: disobeys(func(_ proxy.ServerID, does *history.Configuration) bool {
			ignored := does.Emulates != ""
			does.Emulates = ""
			return ignored
		}),
	},
}
