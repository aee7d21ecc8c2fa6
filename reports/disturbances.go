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
	// Index is its place in the scenario.
	Index int `json:"index"`
	// Sentence says what was done, such as "replace a by v1.37.1".
	Sentence string `json:"sentence"`
	// StartSeconds and EndSeconds are when it began and when it was done.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Disturbs is true when the step changed or harmed the cluster.
	Disturbs bool `json:"disturbs,omitempty"`
	// Error is why it failed; empty if it did not.
	Error string `json:"error,omitempty"`
}

// Fault is one injected fault with its observed effect.
type Fault struct {
	// ID numbers the faults of a run.
	ID int `json:"id"`
	// Kind is "cut", "latency", "timeout", "kill", "pause" and the like.
	Kind string `json:"kind"`
	// From and To name the ends of the link that was interfered with: connections made by From to To.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Server is set, instead of From and To, when the process itself was the target.
	Server string `json:"server,omitempty"`
	// Blocks is true when no response could get through while it was on.
	Blocks bool `json:"blocks,omitempty"`
	// Detail gives its parameters, for people.
	Detail string `json:"detail,omitempty"`
	// StartSeconds and EndSeconds are when it began and when it was healed, or the run ended.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Evidence is its observed effect.
	Evidence FaultEvidence `json:"evidence"`
}

// FaultEvidence is the observed effect of a fault.
type FaultEvidence struct {
	// Effective is false if the fault had no effect: the run then says nothing about it. Requests
	// count only if the process was the target.
	Effective bool `json:"bit"`
	// Connections were refused, cut, or carried bytes through the fault: RefusedConnections,
	// CutConnections, AffectedConnections.
	RefusedConnections  int `json:"refusedConnections,omitempty"`
	CutConnections      int `json:"cutConnections,omitempty"`
	AffectedConnections int `json:"affectedConnections,omitempty"`
	// BytesUp went from From to To while it was on, BytesDown the other way.
	BytesUp   int64 `json:"bytesUp,omitempty"`
	BytesDown int64 `json:"bytesDown,omitempty"`
	// Requests were addressed to, or served by, the target while it was on.
	Requests int `json:"requests,omitempty"`
	// EffectsSeen counts what else shows a misconfiguration to be real; see [Effect].
	EffectsSeen int `json:"effectsSeen,omitempty"`
}

// Target is "from→to" for a link ("all" if no source is named), and the server for a process.
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

// overlaps reports whether the fault was on at some time in the window.
func (f Fault) overlaps(start, end Seconds) bool {
	return f.StartSeconds <= end && f.EndSeconds >= start
}

func newSteps(h *history.History, end time.Duration) []Step {
	out := []Step{}
	for _, s := range inOrder(h.Steps, func(s history.Step) history.Time { return s.Start }) {
		out = append(out, Step{
			Index: s.Index, Sentence: s.Sentence, StartSeconds: seconds(min(s.Start, end)), EndSeconds: seconds(min(s.End, end)),
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

// Effect is what the configuration of one process was observed to do, on the wire and in etcd.
type Effect struct {
	// Server is its name; Incarnation tells which of its processes it was, as in [VersionWindow].
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	// AtSeconds is when it was looked at, which is when the process was about to end.
	AtSeconds Seconds `json:"atSeconds"`
	// Setup says what was out of the ordinary in what it was told; empty if that was not recorded.
	Setup string `json:"setup,omitempty"`
	// Certificate is the serving certificate that it presented: subject, issuer, serial number,
	// expiry. It is empty if none was seen.
	Certificate string `json:"certificate,omitempty"`
	// Advertised is the host:port in its endpoint lease; empty if there was no lease.
	Advertised string `json:"advertised,omitempty"`
	// Dials are the connections made to it, or to the address that it advertised; empty if none were.
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
