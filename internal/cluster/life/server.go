// Package life is the life of a server, whatever it runs on: its incarnations, each of which is processes that live and die together; which of them
// is ready; what is recorded of all that; and which ended although nobody had asked. How processes are started and ended is for others.
package life

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skewproof/skewproof/internal/history"
)

// Recorder receives what happens to servers. [history.Recorder] is one.
type Recorder interface {
	Lifecycle(history.Lifecycle)
	Now() history.Time
}

// Server is an apiserver through all its incarnations. Its lock is held through each change of state, which may take long.
type Server[P Process] struct {
	sync.Mutex
	Name     string
	Version  string // of the present incarnation, or the last one; of the first, before that
	Recorder Recorder
	Status   func(format string, args ...any) // one line for people

	serving      atomic.Int64 // the incarnation that is ready, 0 if none is
	incarnations []*Incarnation[P]
}

// Incarnation is one life of a server: its processes, from the start of the first to the end of the last. It is kept as long as
// its logs are of interest.
type Incarnation[P Process] struct {
	*Unit[P]
	Number  int // from 1
	Version string
	// Emulates is the minor version that it is told to behave like, "1.36"; empty: its own. For who begins it to fill in.
	Emulates string
	asked    atomic.Bool // its end has been asked for
	crashed  atomic.Bool // its end has been recorded as a crash
}

// Begin makes the next incarnation, of [Server.Version]. It has no processes yet, and nothing is recorded of it.
func (s *Server[P]) Begin() *Incarnation[P] {
	now := &Incarnation[P]{Unit: NewUnit[P](), Number: len(s.incarnations) + 1, Version: s.Version}
	s.incarnations = append(s.incarnations, now)
	return now
}

// Last is the present incarnation, or the last one; nil before the first.
func (s *Server[P]) Last() *Incarnation[P] {
	if len(s.incarnations) == 0 {
		return nil
	}
	return s.incarnations[len(s.incarnations)-1]
}

// Runs reports whether the present incarnation is alive, ready or not.
func (s *Server[P]) Runs() bool {
	last := s.Last()
	return last != nil && !last.Ended()
}

// LockRunning locks the server for what verb says, or returns an error if it does not run.
func (s *Server[P]) LockRunning(verb string) error {
	s.Lock()
	if !s.Runs() {
		s.Unlock()
		return fmt.Errorf("%s server %q: it is not running", verb, s.Name)
	}
	return nil
}

// Record records a state of the present incarnation.
func (s *Server[P]) Record(state history.State, detail string) { s.record(s.Last(), state, detail) }

func (s *Server[P]) record(i *Incarnation[P], state history.State, detail string) {
	s.Recorder.Lifecycle(history.Lifecycle{
		Server: s.Name, Incarnation: i.Number, Version: i.Version, Emulates: i.Emulates, State: state, At: s.Recorder.Now(), Detail: detail,
	})
}

// Ready takes an incarnation for ready.
func (s *Server[P]) Ready(i *Incarnation[P]) {
	s.record(i, history.StateReady, "")
	s.serving.Store(int64(i.Number))
	s.Status("%s: %s is ready", s.Name, i.Version)
}

// Serving is the incarnation that is ready at this moment, 0 if none is. It never waits.
func (s *Server[P]) Serving() int { return int(s.serving.Load()) }

// ExpectEnd notes that the end of the present incarnation is asked for: it is no crash.
func (s *Server[P]) ExpectEnd() {
	s.serving.Store(0)
	s.Last().asked.Store(true)
}

// Expected reports whether the end of an incarnation was asked for.
func (i *Incarnation[P]) Expected() bool { return i.asked.Load() }

// Watch returns when an incarnation that was ready is over, or ctx is, and records a crash if nobody had asked for its end: then crashed is true.
// What is left of the server is for the caller to end: half a server is nothing that a scenario could mean.
func (s *Server[P]) Watch(ctx context.Context, i *Incarnation[P]) (crashed bool) {
	select {
	case <-i.Over():
	case <-ctx.Done():
		return false
	}
	s.serving.CompareAndSwap(int64(i.Number), 0)
	if i.Expected() {
		return false
	}
	s.Crash(i, i.First())
	return true
}

// Crash records, once, that an incarnation has ended as it should not, by the end of p.
func (s *Server[P]) Crash(i *Incarnation[P], p P) {
	detail := p.Name() + ": "
	if found := p.Log().Panics(-1); len(found) > 0 { // of which the last lines, a stack, say nothing
		detail += found[0] + "; "
	}
	detail += p.Epitaph()
	if s.recordCrash(i, detail) {
		s.Status("%s: CRASHED: %s", s.Name, detail)
	}
}

// recordCrash reports whether there was no record yet.
func (s *Server[P]) recordCrash(i *Incarnation[P], detail string) bool {
	if !i.crashed.CompareAndSwap(false, true) {
		return false
	}
	s.record(i, history.StateCrashed, detail)
	return true
}

// RecordPanics records, as crashes at the end of the run, panics that incarnations survived but left in their logs.
func (s *Server[P]) RecordPanics() {
	s.Lock()
	defer s.Unlock()
	for n, i := range s.incarnations {
		var found []string
		for _, p := range i.Processes() {
			found = append(found, p.Log().Panics(logEnd(p.Log(), s.incarnations[n+1:]))...)
		}
		if len(found) > 0 {
			s.recordCrash(i, fmt.Sprintf("its logs tell of %d panics; the first: %s", len(found), found[0]))
		}
	}
}

// logEnd is where the output in l ends in its file, which later incarnations share; -1 if nobody wrote there later.
func logEnd[P Process](l Log, later []*Incarnation[P]) int64 {
	for _, i := range later {
		for _, p := range i.Processes() {
			if next := p.Log(); next.Path == l.Path {
				return next.From
			}
		}
	}
	return -1
}

// Identity is the apiserver identity that a kube-apiserver takes on a host of that name, in every incarnation: a hash of two strings, each after its
// length. Source: NewConfig in k8s.io/apiserver/pkg/server/config.go.
func Identity(hostname string) string {
	var data []byte
	for _, part := range []string{hostname, "kube-apiserver"} {
		data = binary.BigEndian.AppendUint16(data, uint16(len(part)))
		data = append(data, part...)
	}
	hash := sha256.Sum256(data)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}
