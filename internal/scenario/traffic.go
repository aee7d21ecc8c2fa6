package scenario

// Traffic is the load that a plan wants in place of the general one. The zero value is the general load: every kind of request on everything
// that is served anywhere. A named one shifts its weight, and asks for what the general load leaves out because it costs much or needs objects.
type Traffic string

// The profiles of traffic.
const (
	GeneralTraffic     Traffic = ""
	WatchTraffic       Traffic = "watch"       // mostly watches, up to ten seconds long
	SubresourceTraffic Traffic = "subresource" // mostly subresources
	UpgradeTraffic     Traffic = "upgrade"     // beside the general load, connections that are upgraded: watches by WebSocket
	FormatTraffic      Traffic = "format"      // every media type for bodies and answers, every type of patch
	LargeListTraffic   Traffic = "large-list"  // lists of many objects, whole and in pages
	DiscoveryTraffic   Traffic = "discovery"   // much discovery, in all its formats, conditional or not, OpenAPI, and what kubectl makes of it
	HostileTraffic     Traffic = "hostile"     // the general load, with headers that only servers may send, and absurd ones
	SparseTraffic      Traffic = "sparse"      // the general load at a hundredth of its rate, for runs of hours
)

// Traffics lists all profiles.
var Traffics = []Traffic{
	GeneralTraffic, WatchTraffic, SubresourceTraffic, UpgradeTraffic, FormatTraffic, LargeListTraffic, DiscoveryTraffic, HostileTraffic,
	SparseTraffic,
}
