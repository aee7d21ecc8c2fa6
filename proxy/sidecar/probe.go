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

	"k8s.io/apiserver/pkg/authentication/user"
)

// The sidecar's own identity at the local kube-apiserver, the one that a kube-apiserver has at itself (its loopback client).
var selfUser = &user.DefaultInfo{Name: user.APIServerUser, UID: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

const (
	probeEvery      = time.Second
	probeTimeout    = 5 * time.Second
	identifyTimeout = 15 * time.Second
	// toleratedMisses is how many probes in a row may bring no answer before the server counts as unready: a machine that is short of time is not
	// helped by sending its requests elsewhere.
	toleratedMisses = 2
)

// probe watches whether the local kube-apiserver is ready, and which process of it that is. Ready and Incarnation are safe for concurrent
// use.
//
// The process is asked for whenever the probe's connection had to be made anew: as long as one connection holds, it is the same. Until
// the answer is there, the last one stands: a broken connection alone is no restart, and to forget what is known on mere suspicion would turn
// a slow machine into an outage. The identity lease does not tell: its holder stays when a lease outlives its process, which it
// does after every crash, and before 1.35 after every stop (component-helpers, lease controller). The probe speaks HTTP/1.1, because
// --goaway-chance breaks HTTP/2 connections of the same process.
type probe struct {
	upstream *url.URL
	client   *http.Client
	server   string
	process  func(context.Context) (string, error) // the name of the process, see processOf
	changed  func()                                // called when another process than before is there
	log      *slog.Logger

	missed    int  // probes without an answer, in a row
	suspected bool // the process may be another

	ready       atomic.Bool
	incarnation atomic.Pointer[string]
}

// Ready reports whether the server was found ready last.
func (p *probe) Ready() bool { return p.ready.Load() }

// Incarnation names the server's process, "" as long as it could never be found out.
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
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for said := ""; ; {
		err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		now := "ready"
		if !p.Ready() {
			now = "not ready"
		}
		if now != said {
			said = now
			p.log.Info("the local kube-apiserver", "is", now, "incarnation", p.Incarnation(), "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once probes once. Its error is why the server was not found ready, or could not be told from the process before.
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
		err = p.identify(ctx) // before readiness: nobody should see a ready server under the name of the one before
	}
	p.ready.Store(true)
	return err
}

// unreadyError is an answer by which the server says that it is not ready.
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
		return fmt.Errorf("cannot tell yet whether the local kube-apiserver has restarted: %w", err)
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
