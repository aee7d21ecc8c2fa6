package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Hops reads the logs of all servers: every server's own account of every request it handled, whoever asked, once for each time that
// it handled it, with what a peer altered on its way. epoch is the wall time of the run's start.
func (c *Cluster) Hops(epoch time.Time) ([]history.Hop, error) {
	var accounts []Account
	for _, p := range c.places {
		a := Account{Server: p.Name, ID: p.ID, Audit: c.config.Files.audit(p.Name)}
		if c.config.Subject == SubjectReference {
			a.Access = c.config.Files.access(p.Name)
		}
		accounts = append(accounts, a)
	}
	return ReadAccounts(accounts, epoch)
}

// Account is where one server tells of the requests that it handled.
type Account struct {
	Server string
	ID     string // its apiserver identity, by which others name it
	Audit  string // the kube-apiserver's audit log
	Access string // the access log of the sidecar in front of it; empty if there is none
}

// ReadAccounts makes hops of the accounts of all servers of a run, on whatever backend: see [Cluster.Hops]. A log that does not exist is empty.
func ReadAccounts(accounts []Account, epoch time.Time) ([]history.Hop, error) {
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
	return settle(contrasted(all), names), nil
}

func (a Account) read(epoch time.Time) ([]passage, error) {
	var passages []passage
	sources := 1
	if a.Access != "" {
		sources = 2
		err := readLog(a.Access, func(log io.Reader) (err error) {
			passages, err = accessed(log, a.Server, epoch)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the access log of the sidecar of server %q: %w", a.Server, err)
		}
	}
	var audit []passage
	err := readLog(a.Audit, func(log io.Reader) (err error) {
		audit, err = audited(log, a.Server, sources, epoch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log of server %q: %w", a.Server, err)
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
