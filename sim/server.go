package sim

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/peers"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
	"github.com/skewproof/skewproof/sim/vtime"
)

// phase is the state of a server's process. A paused process is in the phase running, and its gate
// is shut.
type phase int

const (
	down phase = iota
	starting
	running
	stopping
)

// server is one apiserver with the proxy inside it.
type server struct {
	s       *Simulator
	index   int
	name    string
	id      proxy.ServerID
	address string

	version     *recorded.Version // the resources that it serves
	release     string            // release of its program; version is another release's while the program emulates that one
	policy      proxy.Policy
	on          bool                  // the feature is on
	setup, next *scenario.Setup       // of its process, and of its next one
	does        history.Configuration // the effective configuration of its process
	refused     bool                  // it refused to start with its setup
	sighting    int                   // index in history.Leases of the current record of its lease, counted from 1; 0 if it is not ready
	incarnation int
	recorded    vtime.Time // the last change of its phase
	phase       phase
	gate        *vtime.Gate

	handler  http.Handler
	incoming []*exchange // requests in progress
	rerouted []rerouted  // since the start of its process
	drained  vtime.Time  // until when it serves after it was asked to stop

	broken [2]brokenDocument // its discovery documents, by root
	knowledge
	extended
}

// These are the durations of the parts of a start: until the process reads etcd, and from then
// until it is ready.
const (
	bootsWithin  = 800 * time.Millisecond
	readyWithin  = 2500 * time.Millisecond
	startsSlower = 700 * time.Millisecond // for each unhealthy choice of three
	stopsWithin  = 900 * time.Millisecond
)

// listening reports whether the process accepts connections: it is ready, or it drains.
func (srv *server) listening() bool {
	return srv.phase == running || srv.phase == stopping && srv.s.loop.Now() < srv.drained
}

// start begins a new process of a release, which serves the resources of v. The process becomes
// ready by itself.
func (srv *server) start(release string, v *recorded.Version) {
	s := srv.s
	srv.release, srv.version = release, v
	srv.setup, srv.next, srv.refused = srv.next, nil, false
	srv.block(true)
	srv.incarnation++
	srv.rerouted = srv.rerouted[:0]
	srv.phase = starting
	srv.gate = &vtime.Gate{}
	srv.lifecycle(history.StateStarting, "")
	srv.policy, srv.on = s.setup.Policy(release)
	if srv.on && srv.setup.IsPlain() {
		policy, err := PresetOf(release)
		srv.policy, srv.on = policy, err == nil
	}
	srv.configure()
	if srv.does.Emulates != srv.setup.Like() {
		srv.version, _ = s.setup.Version(release) // no error: the version was loaded before, to check that it exists
	}
	srv.extended = extended{}
	if !srv.applySetup() {
		s.loop.After(bootsWithin, srv.gate, srv.refuse)
		return
	}
	srv.begin()
	slower := startsSlower * time.Duration(s.tape.Choose(tape.Delays, 4))
	s.loop.After(bootsWithin+slower, srv.gate, func() { srv.withEtcd(srv.boot) })
}

// withEtcd calls do as soon as etcd can be reached.
func (srv *server) withEtcd(do func()) {
	l := srv.s.link(srv.index, srv.s.etcdEnd())
	if !l.blocked() {
		do()
		return
	}
	l.countAffected()
	srv.s.loop.After(time.Second, srv.gate, func() { srv.withEtcd(do) })
}

// boot is called when a starting process has read etcd. It does nothing if the process is being
// stopped.
func (srv *server) boot() {
	if srv.phase != starting {
		return
	}
	s := srv.s
	srv.takeIdentity()
	srv.relist()
	srv.see(s.extensions)
	srv.learnLocal()
	slower := startsSlower * time.Duration(s.tape.Choose(tape.Delays, 4))
	s.loop.After(readyWithin+slower, srv.gate, srv.awaitReady)
}

// awaitReady makes the server ready. With the reference proxy, this is when it knows its peers and
// has published its endpoint lease. With upstream's proxy, this is when its informers
// have synced.
func (srv *server) awaitReady() {
	s := srv.s
	if srv.on && !srv.store.Table().Synced() {
		s.loop.After(50*time.Millisecond, srv.gate, srv.awaitReady)
		return
	}
	srv.withEtcd(func() {
		if srv.phase != starting {
			return
		}
		srv.phase = running
		srv.publish()
		srv.lifecycle(history.StateReady, "")
		srv.tellServed()
		s.etcdChanged(srv)
		s.driver.wake()
	})
}

// newHandler makes the handler of a new process.
func (srv *server) newHandler() {
	s := srv.s
	srv.handler = s.setup.local(srv)
	if !srv.on {
		srv.store = nil
		return
	}
	srv.store = proxy.NewStore(srv.policy, srv.id)
	srv.schedule = peers.NewSchedule(srv.policy, s.jitter)
	srv.makeHandler()
}

// jitter returns the random part of the intervals of schedules.
func (s *Simulator) jitter() float64 { return float64(s.tape.Choose(tape.Delays, 1000)) / 1000 }

// makeHandler puts the proxy in front of the apiserver.
func (srv *server) makeHandler() {
	s := srv.s
	h, err := proxy.New(proxy.Config{
		Store: srv.store, Local: s.setup.local(srv), Transport: s.setup.transport(srv),
		FromPeer: func(r *http.Request) bool { return r.Context().Value(exchangeKey{}).(*exchange).parent != nil },
		Now:      s.wall,
		Pick:     func(n int) int { return s.tape.Choose(tape.Picks, n) },
		Splice:   splice,
		Observer: observer{srv},
	})
	if err != nil {
		panic(err) // this function makes a valid configuration
	}
	srv.handler = authorizesNodes{srv, s.setup.handler(srv, h)}
}

// user returns the user of a name. Users are shared, because handlers only read them.
func (s *Simulator) user(name string) user.Info {
	u := s.users[name]
	if u == nil {
		u = newUser(name)
		s.users[name] = u
	}
	return u
}

// kill ends the process without warning.
func (srv *server) kill(state history.State, detail string) {
	srv.unsight()
	srv.phase = down
	srv.silence()
	srv.gate.Close()
	srv.hangUp()
	srv.lifecycle(state, detail)
	s := srv.s
	s.load.stale = true
}

// hangUp breaks every connection of the process.
func (srv *server) hangUp() {
	s := srv.s
	ends := len(s.servers) + 2
	for from := range ends {
		l := s.link(from, srv.index)
		l.warm = false
		for len(l.inFlight) > 0 {
			l.inFlight[len(l.inFlight)-1].broken(errReset)
		}
		s.link(srv.index, from).warm = false
	}
	srv.incoming = srv.incoming[:0]
}

// servesOn is how long the reference serves on after it has withdrawn its key, so that its peers
// can learn that it stops (package proxy/apiserver).
const servesOn = time.Second

// stop ends the process gracefully. If it is ready, it serves on for its delay. Then it accepts no
// connections. A released kube-apiserver removes its leases at once, beside the delay, and the
// reference afterwards (RunPreShutdownHooks in preparedGenericAPIServer.RunWithContext,
// k8s.io/apiserver, pkg/server/genericapiserver.go).
func (srv *server) stop() {
	s := srv.s
	srv.lifecycle(history.StateStopping, "")
	srv.unsight()
	serves := srv.phase == running
	srv.phase = stopping
	srv.drained = s.loop.Now()
	if srv.setup != nil && serves {
		srv.drained += srv.setup.ShutdownDelay
	}
	switch {
	case !srv.reference() || !serves:
		srv.leave()
	case srv.drained == s.loop.Now():
		srv.leave()
		srv.drained += servesOn
	default:
		s.loop.At(srv.drained, srv.gate, srv.leave)
		srv.drained += servesOn
	}
	if srv.drained > s.loop.Now() {
		s.loop.At(srv.drained, srv.gate, func() {
			srv.lifecycle(history.StateDrained, "")
			s.load.stale = true
		})
	}
	s.loop.At(srv.drained+stopsWithin, srv.gate, srv.end)
}

// endsEvery is how often a process that serves no longer checks whether its requests have ended.
const endsEvery = 300 * time.Millisecond

// end ends a process that serves no longer. It first waits for its requests, with its watches.
func (srv *server) end() {
	s := srv.s
	if len(srv.incoming) > 0 && s.loop.Now() < srv.drained+scenario.DrainsWithin {
		s.loop.After(endsEvery, srv.gate, srv.end)
		return
	}
	srv.phase = down
	srv.gate.Close()
	srv.hangUp()
	srv.lifecycle(history.StateStopped, "")
	s.driver.wake()
}

// streams reports whether the process lets watches go on. While it stops without a grace period, it
// ends none.
func (srv *server) streams() bool {
	return srv.listening() || srv.phase == stopping && (srv.setup == nil || srv.setup.WatchTermination == 0)
}

// goAway makes the client of a connection dial again, by chance, after an answer.
func (x *exchange) goAway() {
	if setup := x.target.setup; setup != nil && setup.Goaway == scenario.On && x.s.tape.OneIn(tape.Delays, goawayOneIn) {
		x.link.warm = false
	}
}

// goawayOneIn is [scenario.GoawayChance].
const goawayOneIn = 50

// redial repeats the dialling of exchanges that waited for a handshake with a paused process.
func (s *Simulator) redial(srv *server) {
	for from := range len(s.servers) + 2 {
		l := s.link(from, srv.index)
		for _, x := range append([]*exchange(nil), l.inFlight...) {
			if x.shaking && !x.gone {
				x.shaking = false
				s.dial(x)
			}
		}
	}
}

// pause stops the process like SIGSTOP.
func (srv *server) pause() {
	srv.silence()
	srv.gate.Shut()
	for from := range srv.s.servers {
		if l := srv.s.link(from, srv.index); len(l.inFlight) > 0 {
			srv.s.watch(l)
		}
	}
	srv.lifecycle(history.StatePaused, "")
}

func (srv *server) resume() {
	srv.gate.Reopen(&srv.s.loop)
	srv.lifecycle(history.StateResumed, "")
	srv.s.etcdChanged(srv)
	srv.s.redial(srv)
}

// lifecycle records a change of the process.
func (srv *server) lifecycle(state history.State, detail string) {
	s := srv.s
	// No two records have the same time, so their order is known. The ready record is later by one
	// more, because a request at the instant at which a server becomes ready may be too early.
	at := max(s.loop.Now(), srv.recorded+1)
	if state == history.StateReady {
		at++
	}
	srv.recorded = at
	reports := ""
	if state == history.StateReady {
		reports = srv.reports()
		srv.sight()
	}
	s.trace.add(s.loop.Now(), eventLifecycle, srv.index, srv.incarnation, hashString(string(state)))
	s.history.Lifecycle = append(s.history.Lifecycle, history.Lifecycle{
		Server: srv.name, Incarnation: srv.incarnation, Version: srv.release, Emulates: srv.setup.Like(), Reports: reports, State: state, At: at,
		Detail: detail,
	})
}

// tellServed records the server's own discovery from now on.
func (srv *server) tellServed() {
	s := srv.s
	s.load.stale = true
	d := srv.document()
	s.history.Documents[d.Hash] = d
	served := history.Served{Server: srv.name, Incarnation: srv.incarnation, At: s.loop.Now(), Document: d.Hash}
	for n := len(s.history.Served) - 1; n >= 0 && s.history.Served[n].At == served.At; n-- {
		if s.history.Served[n].Server == srv.name {
			s.history.Served[n] = served // no client can see a state of zero duration
			return
		}
	}
	s.history.Served = append(s.history.Served, served)
}

// roots returns the discovery documents of the server alone.
func (srv *server) roots() [2]discovery.Groups { return srv.extended.roots(srv.version) }
