package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/log"
)

func init() {
	// Only toxiproxy's bandwidth toxic uses zerolog's global logger. It writes to stderr.
	log.Logger = zerolog.Nop()
}

func newServer(w io.Writer) *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.New(w).Level(zerolog.InfoLevel).With().Timestamp().Logger())
}

// serveAPI serves toxiproxy's routes. It does not use toxiproxy's own server, which does not report
// the port that it got, and cannot reset the connections of a link that is disabled through the
// API.
//
// removeToxic avoids a bug of toxiproxy, which its API still has. The bug occurs when one of
// several toxics of a stream is removed.
func (f *Fabric) serveAPI(addr netip.AddrPort) error {
	if addr == (netip.AddrPort{}) {
		addr = netip.MustParseAddrPort(anyPort)
	}
	if !addr.Addr().IsLoopback() {
		return fmt.Errorf("toxiproxy's API at %s: it has no access control and may listen on loopback only", addr)
	}
	var config net.ListenConfig
	listener, err := config.Listen(f.ctx, "tcp", addr.String())
	if err != nil {
		return fmt.Errorf("listen for toxiproxy's API: %w", err)
	}
	f.apiAddr = listener.Addr().(*net.TCPAddr).AddrPort()
	routes := f.server.Routes()
	f.api = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			routes.ServeHTTP(followUp{w, r.Method, f}, r)
		}),
		ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, // as in toxiproxy's own api.go
		BaseContext: func(net.Listener) context.Context { return f.ctx },
	}
	f.tasks.Go(func() {
		if err := f.api.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			f.server.Logger.Err(err).Msg("toxiproxy's API has ended")
		}
	})
	return nil
}

// followUp resets the connections of disabled links before it answers a change.
type followUp struct {
	http.ResponseWriter
	method string
	fabric *Fabric
}

// WriteHeader implements http.ResponseWriter.
func (w followUp) WriteHeader(status int) {
	if w.method != http.MethodGet {
		for _, l := range w.fabric.allLinks() {
			if enabled, _ := l.state(); !enabled {
				l.breakOpen(nil, nil)
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// logWriter passes lines to a writer, one at a time, until it is closed. toxiproxy may still log
// after that.
type logWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return len(p), nil
	}
	return l.w.Write(p)
}

func (l *logWriter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = nil
}
