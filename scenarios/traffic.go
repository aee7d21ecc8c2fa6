package scenarios

// Traffic is the load that a plan wants beside, or in place of, the general one. The zero value is the general load: every kind of
// request on everything that is served anywhere. A named one shifts its weight; nothing is ever asked that the general load would not ask.
type Traffic string

// The profiles of traffic.
const (
	GeneralTraffic     Traffic = ""
	WatchTraffic       Traffic = "watch"       // mostly watches
	SubresourceTraffic Traffic = "subresource" // mostly subresources
	UpgradeTraffic     Traffic = "upgrade"     // beside the general load, connections that are upgraded (exec, port-forward)
	FormatTraffic      Traffic = "format"      // every media type for bodies and answers, every type of patch
	LargeListTraffic   Traffic = "large-list"  // lists of many objects, whole and in pages
	DiscoveryTraffic   Traffic = "discovery"   // mostly discovery, in all its formats, conditional or not, and OpenAPI
)

// Traffics lists all profiles.
var Traffics = []Traffic{GeneralTraffic, WatchTraffic, SubresourceTraffic, UpgradeTraffic, FormatTraffic, LargeListTraffic, DiscoveryTraffic}
