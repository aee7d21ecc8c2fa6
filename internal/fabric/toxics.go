package fabric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/skewproof/skewproof/internal/fault"
)

// stallBound is how long a connection may delay a change of its link's toxics before it is reset.
// toxiproxy changes toxics between two chunks, so a receiver that does not read would delay the
// change for ever.
const stallBound = time.Second

// compatible rejects a second toxic in a stream if one of the two ends streams by itself. To heal
// the first toxic, the one behind it must be removed and added again (see removeToxic). In that
// time, data would pass a timeout. [fault.Fault.Excludes] says the same of two faults.
func (l *link) compatible(d stream.Direction, toxicType string) error {
	for _, present := range l.toxics(d) {
		if fault.Breaking(toxicType) || fault.Breaking(present.Type) {
			return fmt.Errorf("its %s stream carries the toxic %s (%s) already, which cannot be combined with %s: heal that first",
				d, present.Name, present.Type, toxicType)
		}
	}
	return nil
}

// toxics returns the toxics in one stream, also those that other programs have added.
func (l *link) toxics(d stream.Direction) []*toxics.ToxicWrapper {
	var found []*toxics.ToxicWrapper
	for _, t := range l.proxy.Toxics.GetToxicArray() {
		if w, ok := t.(*toxics.ToxicWrapper); ok && w.Direction == d {
			found = append(found, w)
		}
	}
	return found
}

func (l *link) carries(d stream.Direction, toxicType string) bool {
	return slices.ContainsFunc(l.toxics(d), func(t *toxics.ToxicWrapper) bool { return t.Type == toxicType })
}

// addToxic adds a toxic behind the others of the stream, for new and open connections. The caller
// holds configuring.
func (l *link) addToxic(ctx context.Context, w *tally, name string, d stream.Direction, toxicType string, attributes any) error {
	if err := l.compatible(d, toxicType); err != nil {
		return err
	}
	body, err := toxicJSON(name, toxicType, d, attributes)
	if err != nil {
		return err
	}
	return l.change(ctx, w, func() error {
		_, err := l.proxy.Toxics.AddToxicJson(body)
		return err
	})
}

// toxicJSON returns a toxic in the form of toxiproxy's API, which always acts (toxicity 1).
func toxicJSON(name, toxicType string, d stream.Direction, attributes any) (io.Reader, error) {
	body, err := json.Marshal(struct {
		Name       string  `json:"name"`
		Type       string  `json:"type"`
		Stream     string  `json:"stream"`
		Toxicity   float32 `json:"toxicity"`
		Attributes any     `json:"attributes"`
	}{name, toxicType, d.String(), 1, attributes})
	return bytes.NewReader(body), err
}

// removeToxic removes a toxic. It removes the toxics behind it first and adds them again
// afterwards, so that toxiproxy only ever removes the last one. toxiproxy (v2.12.0, RemoveToxic in
// link.go) does not remove a toxic that has seen the end of its stream. If the next toxic then
// still holds data, toxiproxy counts the toxics of that connection wrongly from then on: it never
// removes the next toxic, and panics when another one is added. The caller holds configuring.
func (l *link) removeToxic(ctx context.Context, w *tally, name string, d stream.Direction) error {
	present := l.toxics(d)
	i := slices.IndexFunc(present, func(t *toxics.ToxicWrapper) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("toxic %s is gone: something else has removed it, so the fault may have ended earlier than recorded", name)
	}
	behind := present[i+1:]
	for _, t := range slices.Backward(present[i:]) {
		err := l.change(ctx, w, func() error { return l.proxy.Toxics.RemoveToxic(context.WithoutCancel(ctx), t.Name) })
		if err != nil && !errors.Is(err, toxiproxy.ErrToxicNotFound) {
			return fmt.Errorf("remove toxic %s: %w", t.Name, err)
		}
	}
	for _, t := range behind {
		if err := l.addToxic(ctx, w, t.Name, d, t.Type, t.Toxic); err != nil {
			return fmt.Errorf("put toxic %s back: %w", t.Name, err)
		}
	}
	return nil
}

// clearToxics removes all toxics, the last of each stream first.
func (l *link) clearToxics(ctx context.Context) {
	for _, d := range []stream.Direction{stream.Upstream, stream.Downstream} {
		for _, t := range slices.Backward(l.toxics(d)) {
			_ = l.proxy.Toxics.RemoveToxic(ctx, t.Name) // fails only if it is already gone
		}
	}
}

// change runs a change that waits for chunks in progress. It resets connections that delay the
// change, and w counts them: after stallBound the connections whose receiver does not read, and all
// connections when ctx ends. It always waits until the change returns, because toxiproxy holds the
// link's lock until then.
func (l *link) change(ctx context.Context, w *tally, change func() error) error {
	done := make(chan error, 1)
	go func() { done <- change() }()
	ticks := time.NewTicker(stallBound)
	defer ticks.Stop()
	expired := ctx.Done()
	stuck := map[*pipe]int64{}
	for {
		select {
		case err := <-done:
			return err
		case <-ticks.C:
			l.breakOpen(w, func(c *conn) bool {
				stalled := false
				for _, h := range c.pipes {
					write := h.writing.Load()
					stalled = stalled || write != 0 && stuck[h] == write
					stuck[h] = write
				}
				return stalled
			})
		case <-expired:
			expired = nil
			l.breakOpen(w, nil)
		}
	}
}
