// Package account reads what servers tell of the requests that they handled: kube-apiservers in their audit logs, sidecars in their access logs. It makes
// one account of all of them, whatever the servers run on.
package account

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Logs are where one server tells of the requests that it handled.
type Logs struct {
	Server string
	ID     string // its apiserver identity, by which others name it
	Audit  string // the kube-apiserver's audit log
	Access string // the access log of the sidecar in front of it; empty if there is none
}

// Hops makes hops of the accounts of all servers of a run: every server's own account of every request it handled, whoever asked, once for each
// time that it handled it, with what a peer altered on its way. epoch is the wall time of the run's start. A log that does not exist is empty.
func Hops(accounts []Logs, epoch time.Time) ([]history.Hop, error) {
	var all []passage
	names := map[string]string{}
	for _, a := range accounts {
		names[a.ID] = a.Server
		passages, err := a.read(epoch)
		if err != nil {
			return nil, err
		}
		all = append(all, passages...)
	}
	return settle(contrasted(rerouted(all)), names), nil
}

// rerouted notes that a request was passed on to every server but the one to which it came first: clients send a request to one server only. By itself an audit
// record cannot always tell. It leaves an address out that is the same as the one before (k8s.io/apimachinery, pkg/util/net, SourceIPs), and on kind everybody
// comes to a node from the same one; and where the sidecar of one server is switched off, what it is asked by others has come through one address less.
func rerouted(all []passage) []passage {
	first := map[string]passage{}
	for _, p := range all {
		if f, ok := first[p.Operation]; !ok || p.Start < f.Start {
			first[p.Operation] = p
		}
	}
	out := slices.Clone(all)
	for i := range out {
		f := first[out[i].Operation]
		out[i].Rerouted = out[i].Rerouted || !f.Rerouted && out[i].Server != f.Server && out[i].Start > f.Start
	}
	return out
}

func (l Logs) read(epoch time.Time) ([]passage, error) {
	var passages []passage
	sources := 1
	if l.Access != "" {
		sources = 2
		err := readLog(l.Access, func(log io.Reader) (err error) {
			passages, err = accessed(log, l.Server, epoch)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the access log of the sidecar of server %q: %w", l.Server, err)
		}
	}
	var audit []passage
	err := readLog(l.Audit, func(log io.Reader) (err error) {
		audit, err = audited(log, l.Server, sources, epoch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log of server %q: %w", l.Server, err)
	}
	return merge(passages, audit), nil
}

// readLog reads a log. One that does not exist is empty: its writer was never started.
func readLog(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return read(f)
}
