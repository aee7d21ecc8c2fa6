package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// Digest is a short hash of what a server serves by itself, the same for the same documents and "" while they are not known. Peers compare
// it with what they were told before, and with nothing else.
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

// digest is the [Digest] of what the server has answered, "" if a document is missing. It is not made anew while that is the same as before.
func (a *answer) digest(before lastAnswer) string {
	core, groups := a.Roots[proxy.RootCore], a.Roots[proxy.RootGroups]
	switch {
	case core.Failed != "" || groups.Failed != "":
		return ""
	case before.digest != "" && same(before.Roots[proxy.RootCore].Groups, core.Groups) && same(before.Roots[proxy.RootGroups].Groups, groups.Groups):
		return before.digest
	}
	return digestOf(core.Groups, groups.Groups)
}

// Digester returns a function for [Publisher.Serves] that gives the digest of a store's local server, and makes it anew only when the
// documents are others. It may be called concurrently.
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
