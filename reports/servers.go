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
	// ID is its apiserver identity, which is also the name of its identity lease. It is empty if
	// unknown.
	ID string `json:"id,omitempty"`
	// Address is the host:port that it advertised to its peers.
	Address string `json:"address,omitempty"`
	// Versions are the versions that it ran, in time order. Each restart has its own window.
	Versions []VersionWindow `json:"versions"`
	// Args are the arguments of its first start.
	Args []string `json:"args,omitempty"`
	// Omitted is how many incarnations a page leaves out.
	Omitted int `json:"-"`
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

// VersionWindow is one incarnation of a server, from the start of its process to its end.
type VersionWindow struct {
	// Version is what /version said when the server was ready. Before that, it is the version that
	// was started.
	Version string `json:"version"`
	// Incarnation is 1 for the first start and increases by one with each further start.
	Incarnation int `json:"incarnation"`
	// StartSeconds and EndSeconds bound the life of the process.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// ReadySeconds is when /readyz first answered 200. It is absent if it never did.
	ReadySeconds *Seconds `json:"readySeconds,omitempty"`
}

// StateBand is a time in which a server was in one state.
type StateBand struct {
	// State began at StartSeconds. After a pause, the state of a server is "ready" or "starting",
	// as before the pause.
	State history.State `json:"state"`
	// Version and Incarnation are those of the process, also after its end.
	Version     string `json:"version,omitempty"`
	Incarnation int    `json:"incarnation,omitempty"`
	// StartSeconds and EndSeconds bound the band.
	StartSeconds Seconds `json:"startSeconds"`
	EndSeconds   Seconds `json:"endSeconds"`
	// Detail is the exit status or the last lines of the log, if the state has any.
	Detail string `json:"detail,omitempty"`
}

// left reports whether the process has ended in that state.
func left(s history.State) bool {
	return s == history.StateStopped || s == history.StateKilled || s == history.StateCrashed
}

// stateBands are the states of one server's process from the first record on, without gaps.
func stateBands(h *history.History, server string, end time.Duration) []StateBand {
	bands := []StateBand{}
	var interrupted history.State // the state that a pause interrupted
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

// lifecycle returns the records of one server, without late ones: the run can notice the end of a
// process after the start of the next one.
func lifecycle(h *history.History, server string) []history.Lifecycle {
	var out []history.Lifecycle
	for _, l := range inOrder(h.Lifecycle, func(l history.Lifecycle) history.Time { return l.At }) {
		if l.Server == server && (len(out) == 0 || l.Incarnation >= out[len(out)-1].Incarnation) {
			out = append(out, l)
		}
	}
	return out
}

// newServers joins what the run says about its servers with the states of their processes.
func newServers(h *history.History, lanes []Lane) []Server {
	out := []Server{}
	for i, s := range h.Run.Servers {
		server := Server{Name: s.Name, ID: s.ID, Address: s.Address, Args: s.Args, Versions: []VersionWindow{}}
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
