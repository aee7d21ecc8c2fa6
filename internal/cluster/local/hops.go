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
	var all []passage
	names := map[string]string{}
	for _, p := range c.places {
		names[p.ID] = p.Name
		account, err := accountOf(p.Name, c.config.Subject, c.config.Files, epoch)
		if err != nil {
			return nil, err
		}
		all = append(all, account...)
	}
	return settle(contrasted(all), names), nil
}

// accountOf is what one server tells of the requests it handled.
func accountOf(server, subject string, f Files, epoch time.Time) ([]passage, error) {
	var passages []passage
	sources := 1
	if subject == SubjectReference {
		sources = 2
		err := readLog(f.access(server), func(log io.Reader) (err error) {
			passages, err = accessed(log, server, epoch)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the access log of the sidecar of server %q: %w", server, err)
		}
	}
	var audit []passage
	err := readLog(f.audit(server), func(log io.Reader) (err error) {
		audit, err = audited(log, server, sources, epoch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log of server %q: %w", server, err)
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
