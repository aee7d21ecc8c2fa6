package proxy

import (
	"fmt"
	"slices"
	"strings"
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
