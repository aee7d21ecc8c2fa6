package local

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/life"
)

// unit is the processes of one server, or etcd.
type unit = life.Unit[*process]

// incarnation is one life of a server.
type incarnation = life.Incarnation[*process]

// signal sends a signal to every process.
func signal(u *unit, s syscall.Signal) error {
	var errs []error
	for _, p := range u.Processes() {
		errs = append(errs, p.signal(s))
	}
	return errors.Join(errs...)
}

// kill ends every process at once and waits until all have.
func kill(u *unit) error {
	if err := signal(u, syscall.SIGKILL); err != nil {
		return err
	}
	u.Wait()
	return nil
}

// stop asks one process after the other to end gracefully, the last started first, and waits until all have. It returns the
// first that did not end well, nil if all did.
func stop(ctx context.Context, u *unit, limit time.Duration) (failed *process, err error) {
	for _, p := range slices.Backward(u.Processes()) {
		if err := p.stop(ctx, limit); err != nil {
			return nil, err
		}
		if p.err != nil && failed == nil {
			failed = p
		}
	}
	u.Wait()
	return failed, nil
}
