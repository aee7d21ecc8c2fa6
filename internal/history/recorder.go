package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// record is one JSON line: an object with one key, which names the kind of the record.
type record struct {
	Run           *Run           `json:"run,omitempty"`
	Operation     *Operation     `json:"operation,omitempty"`
	Hop           *Hop           `json:"hop,omitempty"`
	Step          *Step          `json:"step,omitempty"`
	Fault         *Fault         `json:"fault,omitempty"`
	Lifecycle     *Lifecycle     `json:"lifecycle,omitempty"`
	Served        *Served        `json:"served,omitempty"`
	Effect        *Effect        `json:"effect,omitempty"`
	Configuration *Configuration `json:"configuration,omitempty"`
	Lease         *Lease         `json:"lease,omitempty"`
	Crowd         *Crowd         `json:"crowd,omitempty"`
	Counted       *Counted       `json:"counted,omitempty"`
	SlowProbe     *SlowProbe     `json:"late,omitempty"`
	Object        *Object        `json:"object,omitempty"`
	Request       *Request       `json:"request,omitempty"`
	Written       *Written       `json:"written,omitempty"`
	Delivery      *Delivery      `json:"delivery,omitempty"`
	Document      *Document      `json:"document,omitempty"`
	End           *End           `json:"end,omitempty"`
}

// kinds returns the number of fields that are set; a valid record has one.
func (r *record) kinds() (n int) {
	for _, field := range reflect.ValueOf(*r).Fields() {
		if !field.IsNil() {
			n++
		}
	}
	return n
}

// Recorder appends records to a stream of JSON lines as they happen. All methods are safe for
// concurrent use. After the first write error it writes nothing more, and Err and Close return that
// error: a history that a full disk truncated must not look like the history of a shorter run.
type Recorder struct {
	now func() Time

	mu        sync.Mutex
	w         *bufio.Writer
	enc       *json.Encoder
	documents map[string]bool
	asked     map[string][]span
	sent      map[string]bool // the IDs of operations
	closed    bool
	err       error
}

// span is the time from the start to the end of an operation.
type span struct{ start, end Time }

// NewRecorder starts a history on w. now is the clock of the run; nil means the time since this
// call. The caller closes w after Close.
func NewRecorder(w io.Writer, run Run, now func() Time) *Recorder {
	if now == nil {
		start := time.Now()
		now = func() Time { return time.Since(start) }
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	r := &Recorder{now: now, w: buffered, enc: json.NewEncoder(buffered), documents: map[string]bool{}, asked: map[string][]span{},
		sent: map[string]bool{}}
	r.enc.SetEscapeHTML(false)
	run.Schema = SchemaVersion
	r.write(record{Run: &run})
	return r
}

// Now returns the current time of the run.
func (r *Recorder) Now() Time { return r.now() }

// Operation appends a finished operation.
func (r *Recorder) Operation(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[o.Server] = append(r.asked[o.Server], span{o.Start, o.End})
	r.sent[o.ID] = true
	r.writeLocked(record{Operation: &o})
}

// Hop appends one server's log entry of an operation.
func (r *Recorder) Hop(h Hop) { r.write(record{Hop: &h}) }

// Step appends an executed step.
func (r *Recorder) Step(s Step) { r.write(record{Step: &s}) }

// Fault appends a fault that has ended.
func (r *Recorder) Fault(f Fault) { r.write(record{Fault: &f}) }

// Lifecycle appends a change of the state of a server's process.
func (r *Recorder) Lifecycle(l Lifecycle) { r.write(record{Lifecycle: &l}) }

// Effect appends the observed effect of a server's configuration.
func (r *Recorder) Effect(e Effect) { r.write(record{Effect: &e}) }

// Configuration appends the content of the flags of a starting process.
func (r *Recorder) Configuration(c Configuration) { r.write(record{Configuration: &c}) }

// Lease appends the content of a server's endpoint lease over some time.
func (r *Recorder) Lease(l Lease) { r.write(record{Lease: &l}) }

// Crowd appends a caller that has stopped sending many requests at a time.
func (r *Recorder) Crowd(c Crowd) { r.write(record{Crowd: &c}) }

// Counted appends what a server had counted.
func (r *Recorder) Counted(c Counted) { r.write(record{Counted: &c}) }

// SlowProbe appends a probe that was answered slowly or not at all.
func (r *Recorder) SlowProbe(p SlowProbe) { r.write(record{SlowProbe: &p}) }

// Object appends a change of an object in etcd.
func (r *Recorder) Object(o Object) { r.write(record{Object: &o}) }

// Request appends a server's record of a request that the load did not send.
func (r *Recorder) Request(q Request) { r.write(record{Request: &q}) }

// Written appends a write of a step whose answer was compared with its request.
func (r *Recorder) Written(w Written) { r.write(record{Written: &w}) }

// Delivery appends what an informer received.
func (r *Recorder) Delivery(d Delivery) { r.write(record{Delivery: &d}) }

// Served appends the discovery of a server alone, and the document if it is not recorded yet.
func (r *Recorder) Served(s Served, d Document) {
	s.Document = d.Hash
	r.Document(d)
	r.write(record{Served: &s})
}

// Document appends a discovery document, once per hash.
func (r *Recorder) Document(d Document) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents[d.Hash] {
		return
	}
	r.documents[d.Hash] = true
	r.writeLocked(record{Document: &d})
}

// HasDocument reports whether the document with that hash is recorded, so that callers need not
// parse it again.
func (r *Recorder) HasDocument(hash string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.documents[hash]
}

// Asked returns the number of operations to the server that have ended so far.
func (r *Recorder) Asked(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked[server])
}

// Sent reports whether a finished operation has that ID.
func (r *Recorder) Sent(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[id]
}

// UnderWay returns the number of operations to the server that were in progress at some time
// between from and to. It does not count operations that have not ended yet.
func (r *Recorder) UnderWay(server string, from, to Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, s := range r.asked[server] {
		if s.start <= to && s.end >= from {
			n++
		}
	}
	return n
}

// Err returns the first write error, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close appends the End record and flushes. failure is the error of a run that failed. Later
// records are ignored, because servers may continue after the end of the run (--keep).
func (r *Recorder) Close(failure error) error {
	end := End{At: r.now(), Complete: true}
	if failure != nil {
		end.Error = failure.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeLocked(record{End: &end})
	r.closed = true
	return r.flushLocked()
}

func (r *Recorder) flushLocked() error {
	if r.err == nil {
		if err := r.w.Flush(); err != nil {
			r.err = fmt.Errorf("write history: %w", err)
		}
	}
	return r.err
}

func (r *Recorder) write(rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeLocked(rec)
}

func (r *Recorder) writeLocked(rec record) {
	if r.err != nil || r.closed {
		return
	}
	if err := r.enc.Encode(rec); err != nil {
		r.err = fmt.Errorf("write history: %w", err)
	}
}

// Write saves a complete history in the form that [Read] reads. Equal histories give equal bytes.
// Write fills in the schema of the run, and does not change h. A history without an end is written
// without one.
func Write(w io.Writer, h *History) error {
	r := NewRecorder(w, h.Run, nil)
	for _, hash := range slices.Sorted(maps.Keys(h.Documents)) {
		r.Document(h.Documents[hash])
	}
	each(h.Lifecycle, r.Lifecycle)
	each(h.Served, func(s Served) { r.write(record{Served: &s}) })
	each(h.Effects, r.Effect)
	each(h.Configurations, r.Configuration)
	each(h.Leases, r.Lease)
	each(h.Crowds, r.Crowd)
	each(h.Counted, r.Counted)
	each(h.SlowProbes, r.SlowProbe)
	each(h.Steps, r.Step)
	each(h.Operations, func(o Operation) { r.write(record{Operation: &o}) })
	each(h.Hops, r.Hop)
	each(h.Faults, r.Fault)
	each(h.Objects, r.Object)
	each(h.Requests, r.Request)
	each(h.Written, r.Written)
	each(h.Deliveries, r.Delivery)
	if h.End.Complete {
		r.write(record{End: &h.End})
	}
	return r.flushLocked()
}

func each[T any](list []T, do func(T)) {
	for _, item := range list {
		do(item)
	}
}
