package sidecar

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// newAdmin returns what the second listener serves: the sidecar's own metrics, peers and health.
func newAdmin(registry *prometheus.Registry, own checks, debug http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.Handle("GET "+debugPeersPath, debug)
	mux.HandleFunc("GET "+readyzPath, func(w http.ResponseWriter, r *http.Request) {
		text, well := own.outcome(r.URL.Query()["exclude"], true)
		answerHealth(w, r, "readyz", text, well)
	})
	// Who answers, lives.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		answerHealth(w, r, "livez", "[+]ping ok\n", true)
	})
	return loopbackHost(mux)
}

// loopbackHost refuses requests whose Host is not a loopback address: a web page that has its own name resolve to 127.0.0.1 (DNS
// rebinding) is not to read this listener through the browser of somebody on this machine.
func loopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "ask for localhost, or for a loopback address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func newAdminServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}
