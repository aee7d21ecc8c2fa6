package sidecar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const debugPeersPath = "/debug/peers"

// PeersReport is the answer of /debug/peers: the sidecar's knowledge of its server and its peers.
// The JSON names are stable.
type PeersReport struct {
	Server      string       `json:"server"`      // the identity of the kube-apiserver behind the sidecar
	Incarnation string       `json:"incarnation"` // the process of that server, "" if unknown
	Policy      string       `json:"policy"`      // the name of the preset
	Advertised  string       `json:"advertised"`  // the host:port at which peers reach the sidecar
	At          time.Time    `json:"at"`
	Synced      bool         `json:"synced"`               // every source has delivered what existed when it started
	LocalKnown  bool         `json:"localKnown"`           // it is known what the local server serves
	LocalReady  bool         `json:"localReady"`           // the local server says that it is ready
	Mismatches  []string     `json:"mismatches,omitempty"` // flags of the local server that do not fit to the sidecar's flags
	Peers       []PeerReport `json:"peers"`                // sorted by ID
}

// PeerReport is the sidecar's knowledge of one peer.
type PeerReport struct {
	ID           string     `json:"id"`                     // see proxy.ServerID
	Live         bool       `json:"live"`                   // it has a lease that counts
	Incarnation  string     `json:"incarnation,omitempty"`  // its process, according to the lease
	Version      string     `json:"version,omitempty"`      // the version at its /version at the last fetch
	Address      string     `json:"address,omitempty"`      // host:port, empty if unknown
	Direct       bool       `json:"direct,omitempty"`       // it has no proxy: its kube-apiserver itself is at the address
	Documents    []Document `json:"documents"`              // of /api and of /apis
	EjectedUntil *time.Time `json:"ejectedUntil,omitempty"` // nil if it is not avoided
	InFlight     int        `json:"inFlight"`               // requests that are at the peer now, streams included
}

// Document is the sidecar's knowledge of one discovery document of a peer.
type Document struct {
	Path string `json:"path"`
	// Learned is when the document was last fetched or confirmed, nil if never. AgeSeconds is the
	// time since then.
	Learned    *time.Time `json:"learned,omitempty"`
	AgeSeconds float64    `json:"ageSeconds,omitempty"`
	// Failed is why the last fetch failed, empty if it did not.
	Failed string `json:"failed,omitempty"`
}

// debugPeers answers with a PeersReport as JSON, or as a table for people (?format=text).
func debugPeers(reportNow func() PeersReport) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		report := reportNow()
		w.Header().Set("Cache-Control", "no-cache, private")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.URL.Query().Get("format") == "text" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			report.writeText(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(report) // fails only with the connection
	})
}

// peerReports describes the peers of a table.
func peerReports(t *proxy.Table, inFlight func(proxy.ServerID) int, now time.Time) []PeerReport {
	reports := []PeerReport{}
	for _, p := range t.Peers() {
		report := PeerReport{
			ID: string(p.ID), Live: p.Live, Incarnation: p.Incarnation, Version: p.Version, Address: p.Address, Direct: p.Direct,
			InFlight: inFlight(p.ID),
		}
		if p.EjectedUntil.After(now) {
			report.EjectedUntil = &p.EjectedUntil
		}
		for root := range p.Learned {
			d := Document{Path: proxy.Root(root).Path(), Failed: p.Failed[root]}
			if at := p.Learned[root]; !at.IsZero() {
				d.Learned, d.AgeSeconds = &at, now.Sub(at).Seconds()
			}
			report.Documents = append(report.Documents, d)
		}
		reports = append(reports, report)
	}
	return reports
}

func (r PeersReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "server %s, incarnation %s, advertised at %s, policy %s\n", r.Server, cmp.Or(r.Incarnation, "-"), r.Advertised, r.Policy)
	fmt.Fprintf(w, "synced %t, local server known %t, ready %t\n\n", r.Synced, r.LocalKnown, r.LocalReady)
	for _, what := range r.Mismatches {
		fmt.Fprintf(w, "MISMATCH: %s\n\n", what)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PEER\tLIVE\tVERSION\tADDRESS\tPROXY\tIN FLIGHT\tEJECTED FOR\t/api AGE\t/apis AGE\tLAST FAILURE\tINCARNATION")
	for _, p := range r.Peers {
		ejected := "-"
		if p.EjectedUntil != nil {
			ejected = p.EjectedUntil.Sub(r.At).Round(100 * time.Millisecond).String()
		}
		failure, proxied := "", "yes"
		switch {
		case p.Direct:
			proxied = "no"
		case p.Address == "":
			proxied = "-"
		}
		fmt.Fprintf(table, "%s\t%t\t%s\t%s\t%s\t%d\t%s", p.ID, p.Live, cmp.Or(p.Version, "-"), cmp.Or(p.Address, "-"),
			proxied, p.InFlight, ejected)
		for _, d := range p.Documents {
			age := "never"
			if d.Learned != nil {
				age = r.At.Sub(*d.Learned).Round(time.Second).String()
			}
			fmt.Fprintf(table, "\t%s", age)
			if d.Failed != "" {
				failure = d.Path + ": " + d.Failed
			}
		}
		fmt.Fprintf(table, "\t%s\t%s\n", cmp.Or(failure, "-"), cmp.Or(p.Incarnation, "-"))
	}
	_ = table.Flush() // fails only with the connection
}
