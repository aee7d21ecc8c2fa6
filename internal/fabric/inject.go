package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// Active is an injected fault.
type Active struct {
	fabric *Fabric
	link   *link
	fault  fault.Fault
	id     int
	start  history.Time
	tally  *tally
	added  []addedToxic

	healing sync.Mutex
	record  *history.Fault // nil until healed
	err     error
}

type addedToxic struct {
	name      string
	direction stream.Direction
}

// Inject injects one fault into one link. When Inject returns, the fault acts, on open connections
// too. Several faults of one link act together, but a toxic that ends streams (timeout, reset,
// limit-data) must be the only one of its stream. After an error the link is unchanged. If ctx ends
// before toxiproxy has added the fault, Inject resets the connections that delay it.
func (f *Fabric) Inject(ctx context.Context, what fault.Fault) (*Active, error) {
	if err := what.Validate(); err != nil {
		return nil, err
	}
	if what.From == fault.Any || what.To == fault.Any {
		return nil, fmt.Errorf("inject %s: a record names one link: give each server that %q stands for a fault of its own", what, fault.Any)
	}
	l, err := f.link(what.From, what.To)
	if err != nil {
		return nil, fmt.Errorf("inject %s: %w", what, err)
	}
	a := &Active{fabric: f, link: l, fault: what, id: int(f.faults.Add(1)), start: f.now()}
	if err := a.inject(ctx); err != nil {
		return nil, fmt.Errorf("inject %s: link %s: %w", what, l.name(), err)
	}
	return a, nil
}

// Heal removes the fault and returns its record, with the evidence of its effect. A second call
// returns the same. Other faults of the link stay. Even after an error the record is valid and the
// fault is gone. The error says that another program had removed the fault before, or that the link
// could not be enabled again. If ctx ends before toxiproxy is done, Heal resets the connections
// that delay it.
func (a *Active) Heal(ctx context.Context) (history.Fault, error) {
	a.healing.Lock()
	defer a.healing.Unlock()
	if a.record != nil {
		return *a.record, a.err
	}
	evidence, err := a.heal(ctx)
	if err != nil {
		a.err = fmt.Errorf("heal %s: link %s: %w", a.fault, a.link.name(), err)
	}
	a.record = &history.Fault{
		ID: a.id, Kind: string(a.fault.Kind), From: a.fault.From, To: a.fault.To, Blocks: a.fault.Blocks(), Detail: a.fault.Detail(),
		Start: a.start, End: a.fabric.now(), Evidence: evidence,
	}
	return *a.record, a.err
}

func (a *Active) inject(ctx context.Context) error {
	l, effect := a.link, a.fault.Kind.Effect()
	l.configuring.Lock()
	defer l.configuring.Unlock()
	if l.isClosed() {
		return errClosed
	}
	a.tally = &tally{effect: effect}
	for _, d := range streamsOf(a.fault) {
		a.tally.streams[d] = true
	}
	l.attach(a.tally)
	if err := a.apply(ctx, effect); err != nil {
		for _, t := range a.added {
			err = errors.Join(err, l.removeToxic(context.WithoutCancel(ctx), a.tally, t.name, t.direction))
		}
		l.detach(a.tally)
		return err
	}
	l.beginTally(a.tally)
	return nil
}

func (a *Active) apply(ctx context.Context, effect fault.Effect) error {
	l := a.link
	if effect.Disables {
		l.cuts++
		if err := l.disable(); err != nil {
			l.cuts--
			return err
		}
		l.breakOpen(a.tally, nil)
		return nil
	}
	toxic := a.fault.Toxic()
	for _, d := range streamsOf(a.fault) {
		t := addedToxic{fmt.Sprintf("%s-%d-%s", a.fault.Kind, a.id, d), d}
		if err := l.addToxic(ctx, a.tally, t.name, d, toxic.Type, toxic.Attributes); err != nil {
			return err
		}
		a.added = append(a.added, t)
	}
	return context.Cause(ctx)
}

func (a *Active) heal(ctx context.Context) (history.Evidence, error) {
	l, effect := a.link, a.fault.Kind.Effect()
	l.configuring.Lock()
	defer l.configuring.Unlock()
	affected := l.endTally(a.tally)
	if l.isClosed() {
		return l.detach(a.tally), errClosed
	}
	var err error
	if effect.Disables {
		if l.cuts--; l.cuts == 0 {
			err = l.enable()
		}
	}
	for _, t := range a.added {
		err = errors.Join(err, l.removeToxic(ctx, a.tally, t.name, t.direction))
	}
	if effect.Swallows {
		l.reset(a.tally, affected)
	}
	return l.detach(a.tally), err
}

func streamsOf(f fault.Fault) []stream.Direction {
	switch f.Direction {
	case fault.Up:
		return []stream.Direction{stream.Upstream}
	case fault.Down:
		return []stream.Direction{stream.Downstream}
	default:
		return []stream.Direction{stream.Upstream, stream.Downstream}
	}
}
