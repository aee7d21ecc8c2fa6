package proxy

import (
	"fmt"
	"slices"
	"strings"
)

// ExtensionPolicy says how custom resources and aggregated APIs are kept out of what peers are believed to serve: every server
// serves them itself. The zero value is ExtensionsIgnored; [ExtensionsExact] is the one to choose, the others are upstream's.
type ExtensionPolicy int

const (
	// ExtensionsIgnored takes everything from peers (1.34 and before).
	ExtensionsIgnored ExtensionPolicy = iota
	// ExtensionsCutOut removes the group versions of extensions from the knowledge of peers for good (1.35). They come back only
	// with the next fetch after the exclusion has ended. A version that a CustomResourceDefinition drops stays excluded for ever.
	ExtensionsCutOut
	// ExtensionsFiltered keeps raw and filtered knowledge apart, and excludes extensions that exist and, for a grace, those that
	// existed (1.36).
	ExtensionsFiltered
	// ExtensionsExact excludes a custom resource by its own name instead of its whole group version, so that built-in resources of
	// the same group version are still found. It excludes an aggregated API by the group version that the API owns. It excludes what
	// was deleted only from documents that are not newer than the deletion.
	ExtensionsExact
)

// extensionPolicies are the names of the values, in their order.
var extensionPolicies = []string{"ignored", "cut-out", "filtered", "exact"}

// String is the name that [ParseExtensionPolicy] reads.
func (e ExtensionPolicy) String() string {
	if e < 0 || int(e) >= len(extensionPolicies) {
		return fmt.Sprintf("ExtensionPolicy(%d)", int(e))
	}
	return extensionPolicies[e]
}

// ParseExtensionPolicy reads "ignored", "cut-out", "filtered" or "exact". The error says which there are.
func ParseExtensionPolicy(name string) (ExtensionPolicy, error) {
	i := slices.Index(extensionPolicies, name)
	if i < 0 {
		return 0, fmt.Errorf("want %s or %s", strings.Join(extensionPolicies[:len(extensionPolicies)-1], ", "), extensionPolicies[len(extensionPolicies)-1])
	}
	return ExtensionPolicy(i), nil
}
