package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// Reference is the recommended policy: it has everything that KEP-4020 demands, and what operators
// need in addition.
func Reference() Policy {
	return Policy{
		Name: "reference",
		Knowledge: KnowledgePolicy{
			KeepLastGood:    true,
			ForgetOnRestart: true,
			FailClosed:      true,
			WaitForPeers:    true,
			StaleAfter:      time.Minute,
			Leaving:         2 * time.Minute,
			Extensions:      ExtensionsExact,
		},
		Routing: RoutingPolicy{
			Subresources:   true,
			DiscoveryPaths: true,
			RefuseAtHop:    true,
			Attempts:       3,
			Ejection:       5 * time.Second,
			DialTimeout:    time.Second,
			Silence:        10 * time.Second,
		},
		Discovery: DiscoveryPolicy{Merge: true, NewestFirst: true, Everywhere: true, Incomplete: IncompleteMarked},
		Fetching: FetchingPolicy{
			Interval:      3 * time.Second,
			Jitter:        0.2,
			AfterChange:   2 * time.Second,
			Timeout:       5 * time.Second,
			Together:      true,
			OnlyChanged:   true,
			FirstRetry:    100 * time.Millisecond,
			LastRetry:     2 * time.Second,
			LocalInterval: time.Second,
			Accept:        discovery.AcceptV2NoPeer + "," + discovery.AcceptV2 + "," + discovery.AcceptV2Beta1,
			Privileged:    true,
		},
	}
}

// Upstream137 behaves like kube-apiserver 1.37 (read: v1.37.1).
func Upstream137() Policy {
	p := Upstream136()
	p.Name = "upstream-1.37"
	return p
}

// Upstream136 behaves like kube-apiserver 1.36 (read: v1.36.3), the first with the feature on by
// default. Clients cannot see the changes of 1.37 (metrics, CBOR).
func Upstream136() Policy {
	p := Upstream135()
	p.Name = "upstream-1.36"
	p.Knowledge.Extensions = ExtensionsFiltered
	p.Quirks.ExtensionReapInterval = 5 * time.Minute // the informers' resync
	p.Quirks.StaleWhenAlone = true
	return p
}

// Upstream135 behaves like kube-apiserver 1.35 (read: v1.35.4), the first with merged discovery.
func Upstream135() Policy {
	p := Upstream134()
	p.Name = "upstream-1.35"
	p.Quirks.CrashOnFailedFetch = false
	p.Knowledge.Extensions = ExtensionsCutOut
	p.Quirks.ExtensionGrace = 5 * time.Minute
	p.Quirks.ExtensionReapInterval = time.Minute
	p.Discovery.Merge = true
	p.Fetching.Retries = 20
	p.Fetching.Accept = discovery.AcceptV2NoPeer + "," + discovery.AcceptV2 + ",application/json"
	return p
}

// Upstream134 behaves like kube-apiserver 1.34 (read: v1.34.4), the first to use peers' discovery.
func Upstream134() Policy {
	return Policy{
		Name: "upstream-1.34",
		Fetching: FetchingPolicy{
			FirstRetry:    5 * time.Millisecond,
			LastRetry:     1000 * time.Second,
			Retries:       5,
			LocalInterval: 30 * time.Minute,
			Accept:        discovery.AcceptV2,
		},
		Quirks: Quirks{
			CrashOnFailedFetch: true,
			TrustAnyHop:        true,
			PlainErrors:        true,
			EncodeQuery:        true,
			LastErrorOnly:      true,
			EmptyIsDocument:    true,
			LocalByInterval:    true,

			UpgradesWithoutIdentity: true,
		},
	}
}

// Alpha128 behaves like kube-apiserver 1.28 to 1.32 (read: v1.30.14), with StorageVersion objects.
func Alpha128() Policy {
	return Policy{
		Name:      "alpha-1.28",
		Knowledge: KnowledgePolicy{StorageVersions: true},
		Quirks:    Quirks{TrustAnyHop: true, AllMustResolve: true, PlainErrors: true, EncodeQuery: true, UpgradesWithoutIdentity: true},
	}
}

// Presets returns every preset, oldest first and the reference last.
func Presets() []Policy {
	return []Policy{Alpha128(), Upstream134(), Upstream135(), Upstream136(), Upstream137(), Reference()}
}

// PresetNamed returns the preset of that name, or an error that lists the names.
func PresetNamed(name string) (Policy, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return Policy{}, fmt.Errorf("no policy %q%s: there are %s", name, meant(name, names), strings.Join(names, ", "))
}
