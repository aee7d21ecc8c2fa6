package binaries

import (
	"runtime"
	"time"
)

// These are estimates for machines without an earlier build. A kube-apiserver v1.37.1 took three
// minutes on two processors, with empty caches of compiled packages. Programs other than etcd are
// taken to be as large as a kube-apiserver. Compiling uses all processors.
const (
	apiserverWork = 6 * time.Minute // of one processor
	etcdRatio     = 0.1
)

// Estimate returns about how long it takes to build a binary on this machine. It takes the time of
// the latest build of the component, or of a kube-apiserver, from the cache.
func (s *Store) Estimate(ref Ref) time.Duration {
	cached, _ := s.List() // without damaged entries
	latest := func(c Component) (took time.Duration) {
		var when time.Time
		for _, b := range cached {
			if b.Component == c && b.Platform == platform() && b.Seconds > 0 && !b.Fetched.Before(when) {
				when, took = b.Fetched, time.Duration(b.Seconds*float64(time.Second))
			}
		}
		return took
	}
	if took := latest(ref.Component); took > 0 {
		return took
	}
	apiserver := latest(KubeAPIServer)
	if apiserver == 0 {
		apiserver = apiserverWork / time.Duration(runtime.NumCPU())
	}
	if ref.Component == Etcd {
		return time.Duration(etcdRatio * float64(apiserver))
	}
	return apiserver
}
