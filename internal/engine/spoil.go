package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/spoil"
	"github.com/skewproof/skewproof/scenarios"
)

// Spoiler is a [Cluster] that can let discovery documents of a server fail for its peers.
type Spoiler interface {
	// Spoil lets fetches of the document at a path (/api or /apis) fail, in that manner.
	Spoil(server, path string, manner spoil.Manner) error
	// Mend lets them succeed again, and returns how many have failed.
	Mend(server, path string) (failed int, err error)
}

// errCannotSpoil says what to do instead.
var errCannotSpoil = errors.New("this backend cannot let a discovery document fail: choose another scenario, or backend local or sim")

// checkSpoils refuses a plan that spoils on a cluster that cannot, before anything is started.
func checkSpoils(plan scenarios.Plan, cluster Cluster) error {
	spoils := slices.ContainsFunc(plan.Steps, func(s scenarios.Step) bool { return s.Action == scenarios.Spoil })
	if _, ok := cluster.(Spoiler); spoils && !ok {
		return errCannotSpoil
	}
	return nil
}

// spoils are the documents that fail now, by server and path.
type spoils map[[2]string]history.Fault

// spoil carries out a step that spoils or mends.
func (e *executor) spoil(s scenarios.Step) error {
	cluster, ok := e.cluster.(Spoiler)
	if !ok {
		return errCannotSpoil
	}
	if s.Action == scenarios.Mend {
		return e.mend(cluster, s.Server, s.Path)
	}
	key := [2]string{s.Server, s.Path}
	if _, on := e.spoilt[key]; on {
		return fmt.Errorf("%s of %s fails already", s.Path, s.Server)
	}
	e.faults++
	begun := history.Fault{
		ID: e.faults, Kind: string(scenarios.Spoil), To: s.Server, Detail: s.Manner.Detail(s.Path), Start: e.recorder.Now(),
	}
	if err := cluster.Spoil(s.Server, s.Path, s.Manner); err != nil {
		return err
	}
	if e.spoilt == nil {
		e.spoilt = spoils{}
	}
	e.spoilt[key] = begun
	return nil
}

// mend ends a fault that spoil has begun. Its evidence is the fetches that have failed.
func (e *executor) mend(cluster Spoiler, server, path string) error {
	key := [2]string{server, path}
	record, on := e.spoilt[key]
	if !on {
		return fmt.Errorf("%s of %s does not fail", path, server)
	}
	delete(e.spoilt, key)
	failed, err := cluster.Mend(server, path)
	record.End, record.Evidence.Affected = e.recorder.Now(), failed
	e.recorder.Fault(record)
	return err
}

// mendAll ends what the plan left spoilt.
func (e *executor) mendAll() {
	cluster, ok := e.cluster.(Spoiler)
	if !ok {
		return
	}
	for key := range e.spoilt {
		if err := e.mend(cluster, key[0], key[1]); err != nil {
			e.status("mend %s of %s: %v", key[1], key[0], err)
		}
	}
}
