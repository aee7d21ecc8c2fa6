package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Effect is what the configuration of one process of a server was seen to do, on the wire and in etcd, as opposed to what it was told.
type Effect struct {
	// Server is its name; Incarnation tells which of its processes it was, as in [VersionWindow].
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	// AtSeconds is when it was looked at, which is when the process was about to end.
	AtSeconds Seconds `json:"atSeconds"`
	// Setup says what was out of the ordinary in what it was told; empty if that was not recorded.
	Setup string `json:"setup,omitempty"`
	// Certificate is the serving certificate that it showed: subject, issuer, serial number and end. Empty if none could be seen.
	Certificate string `json:"certificate,omitempty"`
	// Advertised is the host:port at which its endpoint lease told peers to find it. Empty if there was no lease.
	Advertised string `json:"advertised,omitempty"`
	// Dials are the connections that were made to it, or to where it told to be, while it ran. Empty if nobody made any.
	Dials []history.Dial `json:"dials,omitempty"`
}

func newEffects(h *history.History, end time.Duration) []Effect {
	var out []Effect
	for _, e := range inOrder(h.Effects, func(e history.Effect) history.Time { return e.At }) {
		out = append(out, Effect{
			Server: e.Server, Incarnation: e.Incarnation, AtSeconds: seconds(min(e.At, end)), Setup: e.Setup,
			Certificate: e.Certificate, Advertised: e.Advertised, Dials: e.Dials,
		})
	}
	return out
}

// Dialled says who connected to the process, a line for each address.
func (e Effect) Dialled() []string {
	var addresses []string
	by := map[string][]string{}
	for _, d := range e.Dials {
		if d.Connections > 0 {
			addresses = appendNew(addresses, d.Address)
			by[d.Address] = append(by[d.Address], fmt.Sprintf("%s × %s", d.From, grouped(d.Connections)))
		}
	}
	slices.Sort(addresses)
	for n, a := range addresses {
		addresses[n] = a + ": " + strings.Join(by[a], ", ")
	}
	return addresses
}
