package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// Digest is a short hash of everything that a table's local server serves, "" while this is
// unknown. Compare only digests of the same server.
func Digest(t *proxy.Table) string {
	if !t.LocalKnown() {
		return ""
	}
	return digestOf(t.Local(proxy.RootCore), t.Local(proxy.RootGroups))
}

func digestOf(core, groups discovery.Groups) string {
	hash := sha256.New()
	for root, of := range [...]discovery.Groups{proxy.RootCore: core, proxy.RootGroups: groups} {
		hash.Write([]byte(discovery.NewDocument(proxy.Root(root).Path(), of).ETag()))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// digest is the [Digest] of an answer, "" if a document is missing. It reuses the last digest if
// the documents are the same.
func (a *answer) digest(before lastAnswer) string {
	core, groups := a.Roots[proxy.RootCore], a.Roots[proxy.RootGroups]
	switch {
	case core.Failed != "" || groups.Failed != "":
		return ""
	case before.digest != "" && same(before.Roots[proxy.RootCore].Groups, core.Groups) &&
		same(before.Roots[proxy.RootGroups].Groups, groups.Groups):
		return before.digest
	}
	return digestOf(core.Groups, groups.Groups)
}

// Digester returns a function for [Publisher] that returns the [Digest] of a store's table. It
// computes a digest only if a document has changed, and may be called concurrently.
func Digester(store *proxy.Store) func() string {
	var (
		mu    sync.Mutex
		known bool
		of    [2]discovery.Groups
		last  string
	)
	return func() string {
		t := store.Table()
		core, groups := t.Local(proxy.RootCore), t.Local(proxy.RootGroups)
		mu.Lock()
		defer mu.Unlock()
		if known != t.LocalKnown() || !same(of[0], core) || !same(of[1], groups) {
			known, of, last = t.LocalKnown(), [2]discovery.Groups{core, groups}, Digest(t)
		}
		return last
	}
}
