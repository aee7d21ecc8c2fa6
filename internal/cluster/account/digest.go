package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
)

// digestGroups is the same for the same groups, whatever their order: they are a set (k8s.io/apiserver, user.Info).
func digestGroups(groups []string) string {
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	return digest(slices.Compact(sorted))
}

// digestExtra is the same for the same fields with the same values; "" if there are none. Keys are compared in lower case, as headers carry them from
// one server to the next (KEP-4020, proxy transport between apiservers and authn; --requestheader-extra-headers-prefix).
func digestExtra(extra map[string]authnv1.ExtraValue) string {
	if len(extra) == 0 {
		return ""
	}
	lower := map[string][]string{}
	for key, values := range extra {
		key = strings.ToLower(key)
		lower[key] = append(lower[key], values...)
	}
	for _, values := range lower {
		slices.Sort(values)
	}
	return digest(lower)
}

// digest is short: it only has to differ by chance as good as never, within one run. JSON writes the keys of a map in order.
func digest(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return "" // of strings there is none
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:6])
}
