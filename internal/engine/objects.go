package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
)

// errNoWitness is the error for a plan that needs the objects in etcd, if the etcd of the cluster
// cannot be read.
var errNoWitness = errors.New("this backend cannot read what exists from etcd: choose another scenario, or backend local")

// watchObjects records the objects in etcd and every change of them until end, also after ctx has
// ended: informers may still receive changes then. end records the last changes, and says why
// changes are missing.
func watchObjects(ctx context.Context, c cluster.Reachable, recorder *history.Recorder) (end func() error, err error) {
	witness, ok := c.(cluster.Witness)
	if !ok {
		return nil, errNoWitness
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- witness.Objects(watching, recorder.Now, recorder.Object) }()
	return func() error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("read from etcd what exists: %w", err)
		}
		return nil
	}, nil
}

// tellRequests records the requests of clients other than the load.
func tellRequests(c cluster.Reachable, recorder *history.Recorder, epoch time.Time) error {
	witness, ok := c.(cluster.Witness)
	if !ok {
		return nil
	}
	requests, err := witness.Requests(epoch, recorder.Sent)
	for _, q := range requests {
		recorder.Request(q)
	}
	return err
}
