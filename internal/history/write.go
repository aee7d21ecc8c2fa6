package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Write saves a history that is there as a whole, as [Read] reads it: the same history gives the same bytes. The run's schema is filled
// in; h is not changed.
func Write(w io.Writer, h *History) error {
	run := h.Run
	run.Schema = SchemaVersion
	buffered := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	var failed error
	put := func(r record) {
		if failed == nil {
			failed = enc.Encode(r)
		}
	}
	put(record{Run: &run})
	for _, hash := range slices.Sorted(maps.Keys(h.Documents)) {
		d := h.Documents[hash]
		put(record{Document: &d})
	}
	for i := range h.Lifecycle {
		put(record{Lifecycle: &h.Lifecycle[i]})
	}
	for i := range h.Served {
		put(record{Served: &h.Served[i]})
	}
	for i := range h.Effects {
		put(record{Effect: &h.Effects[i]})
	}
	for i := range h.Lates {
		put(record{Late: &h.Lates[i]})
	}
	for i := range h.Steps {
		put(record{Step: &h.Steps[i]})
	}
	for i := range h.Operations {
		put(record{Operation: &h.Operations[i]})
	}
	for i := range h.Hops {
		put(record{Hop: &h.Hops[i]})
	}
	for i := range h.Faults {
		put(record{Fault: &h.Faults[i]})
	}
	if h.End.Complete { // a history without an end stays one
		put(record{End: &h.End})
	}
	if failed == nil {
		failed = buffered.Flush()
	}
	if failed != nil {
		return fmt.Errorf("write history: %w", failed)
	}
	return nil
}
