package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxLine is the maximum length of a JSON line. The discovery document of a cluster with thousands
// of resources is a few MiB.
const maxLine = 64 << 20

// ReadFile reads a history that was saved by a [Recorder]. Errors name the file and line.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer func() { _ = f.Close() }()
	h, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", path, err)
	}
	return h, nil
}

// Read reads JSON lines into a History. The first record is the Run. The others may be in any
// order, and Read sorts them by time. A missing End is not an error: then End.Complete is false,
// and no invariant passes. A truncated last line is not an error either, because a killed process
// or a full disk leaves one. Read ignores it.
func Read(r io.Reader) (*History, error) {
	h := &History{Documents: map[string]Document{}}
	var sharing Sharing
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	lines.Split(wholeLines)
	n, records := 0, 0
	for lines.Scan() {
		n++
		line, whole := bytes.CutSuffix(lines.Bytes(), []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if h.End.Complete {
			return nil, fmt.Errorf("line %d: there is a record after the end record: two runs have written to this file", n)
		}
		if !whole && records > 0 && !json.Valid(line) {
			break
		}
		if err := h.add(records == 0, line, &sharing); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		records++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if records == 0 {
		return nil, errors.New("the file is empty")
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	h.Sort()
	return h, nil
}

// wholeLines splits like [bufio.ScanLines] but keeps the newlines, because a last line without a
// newline may be truncated.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func (h *History) add(first bool, line []byte, sharing *Sharing) error {
	var rec record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rec); err != nil {
		return fmt.Errorf("not a history record: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("not a history record: the line has more than one JSON value")
	}
	if rec.kinds() > 1 {
		return errors.New("not a history record: it has more than one kind")
	}
	if first != (rec.Run != nil) {
		return errors.New(`a history has exactly one "run" record, and it is the first`)
	}
	if rec.Run != nil && rec.Run.Schema != SchemaVersion {
		return fmt.Errorf("schema %q: this skewproof reads %q only", rec.Run.Schema, SchemaVersion)
	}
	switch {
	case rec.Operation != nil:
		*rec.Operation = sharing.Operation(*rec.Operation)
	case rec.Hop != nil:
		*rec.Hop = sharing.Hop(*rec.Hop)
	}
	if !h.take(rec) {
		return errors.New("not a history record: its kind is unknown")
	}
	return nil
}

// take adds a record. It returns false for a record without a kind.
func (h *History) take(rec record) bool {
	switch {
	case rec.Run != nil:
		h.Run = *rec.Run
	case rec.Operation != nil:
		h.Operations = append(h.Operations, *rec.Operation)
	case rec.Hop != nil:
		h.Hops = append(h.Hops, *rec.Hop)
	case rec.Step != nil:
		h.Steps = append(h.Steps, *rec.Step)
	case rec.Fault != nil:
		h.Faults = append(h.Faults, *rec.Fault)
	case rec.Lifecycle != nil:
		h.Lifecycle = append(h.Lifecycle, *rec.Lifecycle)
	case rec.Served != nil:
		h.Served = append(h.Served, *rec.Served)
	case rec.Effect != nil:
		h.Effects = append(h.Effects, *rec.Effect)
	case rec.Configuration != nil:
		h.Configurations = append(h.Configurations, *rec.Configuration)
	case rec.Lease != nil:
		h.Leases = append(h.Leases, *rec.Lease)
	case rec.Crowd != nil:
		h.Crowds = append(h.Crowds, *rec.Crowd)
	case rec.Counted != nil:
		h.Counted = append(h.Counted, *rec.Counted)
	case rec.SlowProbe != nil:
		h.SlowProbes = append(h.SlowProbes, *rec.SlowProbe)
	case rec.Object != nil:
		h.Objects = append(h.Objects, *rec.Object)
	case rec.Request != nil:
		h.Requests = append(h.Requests, *rec.Request)
	case rec.Written != nil:
		h.Written = append(h.Written, *rec.Written)
	case rec.Delivery != nil:
		h.Deliveries = append(h.Deliveries, *rec.Delivery)
	case rec.Document != nil:
		h.Documents[rec.Document.Hash] = *rec.Document
	case rec.End != nil:
		h.End = *rec.End
	default:
		return false
	}
	return true
}

// check rejects records that contradict each other.
func (h *History) check() error {
	servers := map[string]bool{}
	for _, s := range h.Run.Servers {
		servers[s.Name] = true
	}
	var wrong error
	ordered := func(what string, start, end Time) {
		if end < start && wrong == nil {
			wrong = fmt.Errorf("%s ends at %s, before it starts at %s", what, end, start)
		}
	}
	for _, o := range h.Operations {
		if !servers[o.Server] {
			return fmt.Errorf("operation %s was sent to server %q, which the run does not list", o.ID, o.Server)
		}
		ordered("operation "+o.ID, o.Start, o.End)
	}
	for _, s := range h.Served {
		if !servers[s.Server] {
			return fmt.Errorf("a served record names server %q, which the run does not list", s.Server)
		}
		if _, ok := h.Documents[s.Document]; !ok {
			return fmt.Errorf("server %q served document %s, which the history does not hold", s.Server, s.Document)
		}
		if s.Confirmed > s.At {
			return fmt.Errorf("server %q served document %s from %s on, but its previous document was confirmed at %s, which is later",
				s.Server, s.Document, s.At, s.Confirmed)
		}
	}
	for _, l := range h.Leases {
		ordered("what the endpoint lease of server "+l.Server+" says", l.First, l.Last)
	}
	for _, c := range h.Crowds {
		if !servers[c.Server] {
			return fmt.Errorf("a crowd asked server %q, which the run does not list", c.Server)
		}
		ordered("a crowd at server "+c.Server, c.Start, c.End)
	}
	for _, c := range h.Counted {
		if !servers[c.Server] {
			return fmt.Errorf("server %q has counted requests, and the run does not list this server", c.Server)
		}
	}
	for _, p := range h.SlowProbes {
		ordered("a slow probe of server "+p.Server, p.Start, p.End)
	}
	for _, q := range h.Requests {
		if !servers[q.Server] {
			return fmt.Errorf("request %s was handled by server %q, which the run does not list", q.ID, q.Server)
		}
		ordered("request "+q.ID, q.Start, q.End)
	}
	if err := h.checkDeliveries(servers); err != nil {
		return err
	}
	for _, f := range h.Faults {
		ordered(fmt.Sprintf("fault %d", f.ID), f.Start, f.End)
	}
	return wrong
}

// deliveryKinds are all kinds of deliveries.
var deliveryKinds = []DeliveryKind{
	DeliveryStarted, DeliveryListed, DeliveryAdded, DeliveryModified, DeliveryDeleted, DeliveryBookmark, DeliveryFailed, DeliveryEnded,
}

// checkDeliveries rejects deliveries that no informer can have received.
func (h *History) checkDeliveries(servers map[string]bool) error {
	type place struct {
		informer string
		index    int
	}
	seen := map[place]bool{}
	for _, d := range h.Deliveries {
		at := place{d.Informer, d.Index}
		event := d.Kind == DeliveryAdded || d.Kind == DeliveryModified || d.Kind == DeliveryDeleted
		switch {
		case d.Server != "" && !servers[d.Server]:
			return fmt.Errorf("informer %q asks server %q, which the run does not list", d.Informer, d.Server)
		case !slices.Contains(deliveryKinds, d.Kind):
			return fmt.Errorf("delivery %d of informer %q is of unknown kind %q: want one of %q", d.Index, d.Informer, d.Kind, deliveryKinds)
		case event && len(d.Objects) != 1:
			return fmt.Errorf("delivery %d of informer %q is an event with %d objects: want one", d.Index, d.Informer, len(d.Objects))
		case seen[at]:
			return fmt.Errorf("informer %q has two deliveries %d", d.Informer, d.Index)
		}
		seen[at] = true
	}
	return nil
}

// Sort sorts the records by time, as [Read] does.
func (h *History) Sort() {
	slices.SortStableFunc(h.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.ID, b.ID))
	})
	sortByTime(h.Hops, func(hop Hop) Time { return hop.Start })
	sortByTime(h.Steps, func(s Step) Time { return s.Start })
	sortByTime(h.Faults, func(f Fault) Time { return f.Start })
	sortByTime(h.Lifecycle, func(l Lifecycle) Time { return l.At })
	sortByTime(h.Effects, func(e Effect) Time { return e.At })
	sortByTime(h.Configurations, func(c Configuration) Time { return c.At })
	sortByTime(h.Leases, func(l Lease) Time { return l.First })
	sortByTime(h.Crowds, func(c Crowd) Time { return c.Start })
	sortByTime(h.Counted, func(c Counted) Time { return c.At })
	sortByTime(h.SlowProbes, func(p SlowProbe) Time { return p.Start })
	slices.SortStableFunc(h.Objects, func(a, b Object) int { return cmp.Compare(a.Revision, b.Revision) })
	sortByTime(h.Requests, func(q Request) Time { return q.Start })
	slices.SortStableFunc(h.Deliveries, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Informer, b.Informer), cmp.Compare(a.Index, b.Index))
	})
	sortByTime(h.Served, func(s Served) Time { return s.At })
}

func sortByTime[T any](list []T, at func(T) Time) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(at(a), at(b)) })
}
