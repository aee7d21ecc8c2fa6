//go:build !planted

package apiserver

import (
	"net/http"

	"github.com/skewproof/skewproof/proxy"
)

// A build with the tag planted has a defect in one of these four places, so that a test can find
// out whether a search on real servers notices it: see planted.go. All other builds have none.

func plantedOptions(o Options) Options                                       { return o }
func plantedTransport(to http.RoundTripper) http.RoundTripper                { return to }
func plantedHandler(h http.Handler, _ func(*http.Request) bool) http.Handler { return h }
func plantedMetrics(m proxy.Observer) proxy.Observer                         { return m }
