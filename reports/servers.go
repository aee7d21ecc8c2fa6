package reports

import (
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Server is one apiserver of the run.
type Server struct {
	// Name is its name in the scenario.
	Name string `json:"name"`
	// ID is its apiserver identity, which is also the name of its identity lease; empty if unknown.
	ID string `json:"id,omitempty"`
	// Address is the host:port it advertised to its peers.
	Address string `json:"address,omitempty"`
	// Versions are the versions it ran, in time order. Each restart is a window of its own.
	Versions []VersionWindow `json:"versions"`
	// Args are the arguments it was first started with.
	Args []string `json:"args,omitempty"`
	// ProxyArgs are the arguments of the sidecar in front of it; empty if there is none.
	ProxyArgs []string `json:"proxyArgs,omitempty"`
}

// Ran lists the versions the server ran: "v1.36.3 → v1.37.1", "v1.37.1 × 3" for three starts.
func (s Server) Ran() string {
	var words []string
	for n := 0; n < len(s.Versions); {
		version, times := s.Versions[n].Version, 0
		for ; n < len(s.Versions) && s.Versions[n].Version == version; n++ {
			times++
		}
		if times > 1 {
			version += " × " + grouped(times)
		}
		words = append(words, version)
	}
	return strings.Join(words, " → ")
}

// VersionWindow is one incarnation of a server: from the start of its process until it left.
type VersionWindow struct {
	// Version is what /version told once ready; before that, what was started.
	Version string `json:"version"`
	// Incarnation is 1 for the first start and one more for each further one.
	Incarnation int `json:"incarnation"`
	// StartSeconds and EndSeconds bound the life of the process.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// ReadySeconds is when /readyz first answered 200; absent if it never did.
	ReadySeconds *Seconds `json:"readySeconds,omitempty"`
}

// StateBand is a stretch of time in which a server was in one state.
type StateBand struct {
	// State was entered at StartSeconds. A resumed server is "ready" or "starting", as before its
	// pause.
	State history.State `json:"state"`
	// Version and Incarnation are those of the process, also after it left.
	Version     string `json:"version,omitempty"`
	Incarnation int    `json:"incarnation,omitempty"`
	// StartSeconds and EndSeconds bound the band.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Detail is the exit status or the last lines of the log, where the state has any.
	Detail string `json:"detail,omitempty"`
}

// left reports whether the process is gone in that state.
func left(s history.State) bool {
	return s == history.StateStopped || s == history.StateKilled || s == history.StateCrashed
}

// stateBands are the states of one server's process, end to end, from the first record on.
func stateBands(h *history.History, server string, end time.Duration) []StateBand {
	bands := []StateBand{}
	var interrupted history.State // by a pause
	for _, l := range lifecycle(h, server) {
		state := l.State
		if n := len(bands); n > 0 {
			switch before := bands[n-1].State; {
			case state == history.StatePaused && before != history.StatePaused:
				interrupted = before
			case state == history.StateResumed && before != history.StatePaused:
				continue
			case state == history.StateResumed:
				state = interrupted
			}
			bands[n-1].EndSeconds = seconds(min(max(l.At, 0), end))
		}
		bands = append(bands, StateBand{
			State: state, Version: l.Version, Incarnation: l.Incarnation,
			StartSeconds: seconds(min(max(l.At, 0), end)), EndSeconds: seconds(end), Detail: l.Detail,
		})
	}
	return bands
}

// lifecycle are the records of one server, without late ones: the end of a process can be noticed
// after the next one was started.
func lifecycle(h *history.History, server string) []history.Lifecycle {
	var out []history.Lifecycle
	for _, l := range inOrder(h.Lifecycle, func(l history.Lifecycle) history.Time { return l.At }) {
		if l.Server == server && (len(out) == 0 || l.Incarnation >= out[len(out)-1].Incarnation) {
			out = append(out, l)
		}
	}
	return out
}

// newServers joins what the run says of its servers with what their processes did.
func newServers(h *history.History, lanes []Lane) []Server {
	out := []Server{}
	for i, s := range h.Run.Servers {
		server := Server{Name: s.Name, ID: s.ID, Address: s.Address, Args: s.Args, ProxyArgs: s.ProxyArgs, Versions: []VersionWindow{}}
		for _, b := range lanes[i].States {
			n := len(server.Versions)
			switch {
			case n > 0 && server.Versions[n-1].Incarnation == b.Incarnation:
				if left(b.State) {
					continue
				}
			case left(b.State):
				continue
			default:
				server.Versions = append(server.Versions, VersionWindow{Incarnation: b.Incarnation, StartSeconds: b.StartSeconds})
				n++
			}
			w := &server.Versions[n-1]
			w.Version, w.EndSeconds = b.Version, b.EndSeconds
			if b.State == history.StateReady && w.ReadySeconds == nil {
				ready := b.StartSeconds
				w.ReadySeconds = &ready
			}
		}
		out = append(out, server)
	}
	return out
}
