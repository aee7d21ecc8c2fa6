package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// DiscoveryBreaker is a [Cluster] that can let discovery documents of a server fail for its peers.
type DiscoveryBreaker interface {
	// BreakDiscovery lets fetches of the document at a path (/api or /apis) fail, in that manner.
	BreakDiscovery(server, path string, how fault.DiscoveryFailure) error
	// RestoreDiscovery lets them succeed again, and returns how many have failed.
	RestoreDiscovery(server, path string) (failed int, err error)
}

// errCannotSpoil says what to do instead.
var errCannotSpoil = errors.New("this backend cannot let a discovery document fail: choose another scenario, or backend local or sim")

// checkSpoils refuses a plan that spoils on a cluster that cannot, before anything is started.
func checkSpoils(plan scenario.Plan, cluster Cluster) error {
	spoils := slices.ContainsFunc(plan.Steps, func(s scenario.Step) bool { return s.Action == scenario.BreakDiscovery })
	if _, ok := cluster.(DiscoveryBreaker); spoils && !ok {
		return errCannotSpoil
	}
	return nil
}

// spoils are the documents that fail now, by server and path.
type spoils map[[2]string]history.Fault

// spoil carries out a step that spoils or mends.
func (e *executor) spoil(s scenario.Step) error {
	cluster, ok := e.cluster.(DiscoveryBreaker)
	if !ok {
		return errCannotSpoil
	}
	if s.Action == scenario.RestoreDiscovery {
		return e.mend(cluster, s.Server, s.Path)
	}
	key := [2]string{s.Server, s.Path}
	if _, on := e.spoilt[key]; on {
		return fmt.Errorf("%s of %s fails already", s.Path, s.Server)
	}
	e.faults++
	begun := history.Fault{
		ID: e.faults, Kind: string(scenario.BreakDiscovery), To: s.Server, Detail: s.Failure.Detail(s.Path), Start: e.recorder.Now(),
	}
	if err := cluster.BreakDiscovery(s.Server, s.Path, s.Failure); err != nil {
		return err
	}
	if e.spoilt == nil {
		e.spoilt = spoils{}
	}
	e.spoilt[key] = begun
	return nil
}

// mend ends a fault that spoil has begun. Its evidence is the fetches that have failed.
func (e *executor) mend(cluster DiscoveryBreaker, server, path string) error {
	key := [2]string{server, path}
	record, on := e.spoilt[key]
	if !on {
		return fmt.Errorf("%s of %s does not fail", path, server)
	}
	delete(e.spoilt, key)
	failed, err := cluster.RestoreDiscovery(server, path)
	record.End, record.Evidence.Affected = e.recorder.Now(), failed
	e.recorder.Fault(record)
	return err
}

// mendAll ends what the plan left spoilt.
func (e *executor) mendAll() {
	cluster, ok := e.cluster.(DiscoveryBreaker)
	if !ok {
		return
	}
	for key := range e.spoilt {
		if err := e.mend(cluster, key[0], key[1]); err != nil {
			e.status("mend %s of %s: %v", key[1], key[0], err)
		}
	}
}
