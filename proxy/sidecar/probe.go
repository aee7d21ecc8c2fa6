package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
)

// selfUser is the sidecar's own identity at the local server. It is the identity of
// kube-apiserver's loopback client.
var selfUser = &user.DefaultInfo{Name: user.APIServerUser, UID: user.APIServerUser,
	Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

const (
	probeEvery      = time.Second
	probeTimeout    = 5 * time.Second
	identifyTimeout = 15 * time.Second
	// toleratedMisses is how many probes in a row may get no answer before the server counts as not
	// ready. If the machine is overloaded, it does not help to send its requests elsewhere.
	toleratedMisses = 2
)

// probe watches whether the local kube-apiserver is ready, and which process it is. Ready and
// Incarnation are safe for concurrent use.
//
// The probe identifies the process whenever it had to open a new connection, because one connection
// leads to one process. Until the new identification, the last known process counts. A broken
// connection alone is not a restart, and if the probe discarded all knowledge too early, a slow
// machine would become an outage. The identity lease does not help: its holder stays after a crash,
// and before 1.35 after every stop (component-helpers, lease controller). The probe uses HTTP/1.1,
// because --goaway-chance closes HTTP/2 connections.
type probe struct {
	upstream *url.URL
	client   *http.Client
	server   string
	process  func(context.Context) (string, error) // the name of the process, see processOf
	changed  func()                                // called when there is a new process
	log      *slog.Logger

	missed    int  // probes in a row without an answer
	suspected bool // the process may be a new one

	ready       atomic.Bool
	incarnation atomic.Pointer[string]
}

// Ready reports whether the server was ready at the last probe.
func (p *probe) Ready() bool { return p.ready.Load() }

// Incarnation names the server's process. It is "" until the process is first identified.
func (p *probe) Incarnation() string {
	if s := p.incarnation.Load(); s != nil {
		return *s
	}
	return ""
}

// Run probes until ctx ends.
func (p *probe) Run(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	p.suspected = true
	logged := ""
	_ = wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		err := p.once(ctx)
		state := "ready"
		if !p.Ready() {
			state = "not ready"
		}
		if state != logged && ctx.Err() == nil {
			logged = state
			p.log.Info("the local kube-apiserver", "is", state, "incarnation", p.Incarnation(), "error", err)
		}
		return false, nil
	})
}

// once probes once. Its error says why the server is not ready, or why it could not be identified.
func (p *probe) once(ctx context.Context) error {
	err := p.readyz(ctx)
	var unready unreadyError
	switch {
	case err == nil:
		p.missed = 0
	case errors.As(err, &unready):
		p.missed = 0
		p.ready.Store(false)
		return err
	default:
		p.missed++
		if p.missed > toleratedMisses || errors.Is(err, syscall.ECONNREFUSED) {
			p.ready.Store(false)
		}
		return err
	}
	if p.suspected {
		err = p.identify(ctx) // before ready is set: a new process must not be ready under the old process's name
	}
	p.ready.Store(true)
	return err
}

// unreadyError is an answer of a server that is not ready.
type unreadyError string

func (e unreadyError) Error() string { return "its /readyz answers " + string(e) }

func (p *probe) readyz(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { p.suspected = p.suspected || !c.Reused },
	})
	answer, err := p.get(traced, "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return unreadyError(answer.Status)
	}
	return nil
}

func (p *probe) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	process, err := p.process(ctx)
	if err != nil {
		return fmt.Errorf("find out whether the local kube-apiserver has restarted: %w", err)
	}
	p.suspected = false
	name := p.server + "_" + process
	if before := p.incarnation.Swap(&name); before != nil && *before != name {
		p.log.Info("the local kube-apiserver has restarted", "incarnation", name)
		p.changed()
	}
	return nil
}

func (p *probe) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.upstream.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	return p.client.Do(r)
}
