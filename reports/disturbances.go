package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Step is one executed step of the scenario.
type Step struct {
	// Index is the position of the step in the scenario.
	Index int `json:"index"`
	// Sentence says what the step did, such as "replace a by v1.37.1".
	Sentence string `json:"sentence"`
	// StartSeconds and EndSeconds are when the step began and ended.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Disturbs is true if the step changed or harmed the cluster.
	Disturbs bool `json:"disturbs,omitempty"`
	// Error says why the step failed. It is empty if the step did not fail.
	Error string `json:"error,omitempty"`
}

// Fault is one injected fault with its observed effect.
type Fault struct {
	// ID numbers the faults of a run.
	ID int `json:"id"`
	// Kind is "cut", "latency", "timeout", "kill", "pause" and the like.
	Kind string `json:"kind"`
	// From and To name the ends of the link with the fault: the fault affects connections from From
	// to To.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Server is set, instead of From and To, if the process itself was the target.
	Server string `json:"server,omitempty"`
	// Blocks is true if no response could get through while the fault was active.
	Blocks bool `json:"blocks,omitempty"`
	// Detail gives the parameters of the fault for people.
	Detail string `json:"detail,omitempty"`
	// StartSeconds is when the fault began. EndSeconds is when it was healed, or when the run
	// ended.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Evidence is the observed effect of the fault.
	Evidence FaultEvidence `json:"evidence"`
}

// FaultEvidence is the observed effect of a fault.
type FaultEvidence struct {
	// Effective is false if the fault had no effect. Then the run says nothing about the fault.
	// Requests count only if the process was the target.
	Effective bool `json:"bit"`
	// RefusedConnections, CutConnections and AffectedConnections count connections that the fault
	// refused, that it cut, and that carried bytes through it.
	RefusedConnections  int `json:"refusedConnections,omitempty"`
	CutConnections      int `json:"cutConnections,omitempty"`
	AffectedConnections int `json:"affectedConnections,omitempty"`
	// BytesUp counts the bytes from From to To while the fault was active. BytesDown counts those
	// in the other direction.
	BytesUp   int64 `json:"bytesUp,omitempty"`
	BytesDown int64 `json:"bytesDown,omitempty"`
	// Requests counts requests that were addressed to the target, or served by it, while the fault
	// was active.
	Requests int `json:"requests,omitempty"`
	// EffectsSeen counts other signs that a misconfiguration is real; see [Effect].
	EffectsSeen int `json:"effectsSeen,omitempty"`
}

// Target is "from→to" for a link ("all" if no source is named), and the name of the server for a
// process.
func (f Fault) Target() string {
	if f.Server != "" {
		return f.Server
	}
	return cmp.Or(f.From, "all") + "→" + f.To
}

// concerns reports whether the fault belongs on the lane of that server.
func (f Fault) concerns(server string) bool {
	return f.Server == server || f.From == server || f.To == server
}

// overlaps reports whether the fault was active at some time in the window.
func (f Fault) overlaps(start, end Seconds) bool {
	return f.StartSeconds <= end && f.EndSeconds >= start
}

func newSteps(h *history.History, end time.Duration) []Step {
	out := []Step{}
	for _, s := range inOrder(h.Steps, func(s history.Step) history.Time { return s.Start }) {
		sentence := s.Sentence
		if s.Refused != "" {
			sentence += " (not carried out: " + s.Refused + ")"
		}
		out = append(out, Step{
			Index: s.Index, Sentence: sentence, StartSeconds: seconds(min(s.Start, end)), EndSeconds: seconds(min(s.End, end)),
			Disturbs: s.Disturbs, Error: s.Error,
		})
	}
	return out
}

func newFaults(h *history.History, end time.Duration) []Fault {
	out := []Fault{}
	for _, f := range inOrder(h.Faults, func(f history.Fault) history.Time { return f.Start }) {
		e := f.Evidence
		out = append(out, Fault{
			ID: f.ID, Kind: f.Kind, From: f.From, To: f.To, Server: f.Server, Blocks: f.Blocks, Detail: f.Detail,
			StartSeconds: seconds(min(f.Start, end)), EndSeconds: seconds(min(f.End, end)),
			Evidence: FaultEvidence{
				Effective: f.Effective(), RefusedConnections: e.Refused, CutConnections: e.Cut, AffectedConnections: e.Affected,
				BytesUp: e.BytesUp, BytesDown: e.BytesDown, Requests: e.Requests, EffectsSeen: e.Seen,
			},
		})
	}
	return out
}

// Effect is the observed effect of one process's configuration, on the network and in etcd.
type Effect struct {
	// Server is the name of the server. Incarnation says which of its processes it is, as in
	// [VersionWindow].
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	// AtSeconds is when the run looked at the process. This was when the process was about to end.
	AtSeconds Seconds `json:"atSeconds"`
	// Setup says what was unusual in the configuration. It is empty if that was not recorded.
	Setup string `json:"setup,omitempty"`
	// Certificate is the serving certificate that the process presented: subject, issuer, serial
	// number, expiry. It is empty if no certificate was seen.
	Certificate string `json:"certificate,omitempty"`
	// Advertised is the host:port in the endpoint lease. It is empty if there was no lease.
	Advertised string `json:"advertised,omitempty"`
	// Dials are the connections to the process, or to the address that it advertised. It is empty
	// if there were none.
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

// Dialled says who connected to the process, one line for each address.
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
