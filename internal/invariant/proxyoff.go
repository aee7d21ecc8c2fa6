package invariant

import "github.com/skewproof/skewproof/internal/history"

// proxyOff reports whether the plan had the proxy of a server switched off at some time of w. Such a server is held to nothing that the proxy
// is there for, and to everything else. A run whose subject is that nobody has a proxy says nothing of the kind, and is judged in full.
func (f *Facts) proxyOff(server string, w window) bool {
	for _, fault := range f.faultList {
		if fault.Kind == history.FaultProxyOff && fault.Server == server && (window{fault.Start, fault.End}).overlaps(w) {
			return true
		}
	}
	return false
}
