package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// record is one JSON line: an object with the one key that says what it holds.
type record struct {
	Run       *Run       `json:"run,omitempty"`
	Operation *Operation `json:"operation,omitempty"`
	Hop       *Hop       `json:"hop,omitempty"`
	Step      *Step      `json:"step,omitempty"`
	Fault     *Fault     `json:"fault,omitempty"`
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	Served    *Served    `json:"served,omitempty"`
	Effect    *Effect    `json:"effect,omitempty"`
	Late      *Late      `json:"late,omitempty"`
	Document  *Document  `json:"document,omitempty"`
	End       *End       `json:"end,omitempty"`
}

// kinds is how many kinds of record r is; of a whole one it is 1.
func (r *record) kinds() int {
	n := 0
	for _, is := range []bool{
		r.Run != nil, r.Operation != nil, r.Hop != nil, r.Step != nil, r.Fault != nil, r.Lifecycle != nil,
		r.Served != nil, r.Effect != nil, r.Late != nil, r.Document != nil, r.End != nil,
	} {
		if is {
			n++
		}
	}
	return n
}

// Recorder appends records to a stream of JSON lines as they happen. All methods may be called concurrently. The first
// write error is kept, stops all further writing, and is returned by Err and Close: a full disk must not pass for a
// short run.
type Recorder struct {
	now func() Time

	mu        sync.Mutex
	w         *bufio.Writer
	enc       *json.Encoder
	documents map[string]bool
	counts    Counts
	asked     map[string][]span
	closed    bool
	err       error
}

// span is from when to when an operation was under way.
type span struct{ start, end Time }

// Counts says how much has been recorded so far.
type Counts struct {
	Operations int // every operation that ended
	Answered   int // those with an HTTP status
}

// NewRecorder starts a history on w. The clock is that of the run; nil means wall time since this call. The caller
// closes w after Close.
func NewRecorder(w io.Writer, run Run, now func() Time) *Recorder {
	if now == nil {
		start := time.Now()
		now = func() Time { return time.Since(start) }
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	r := &Recorder{now: now, w: buffered, enc: json.NewEncoder(buffered), documents: map[string]bool{}, asked: map[string][]span{}}
	r.enc.SetEscapeHTML(false)
	run.Schema = SchemaVersion
	r.write(record{Run: &run})
	return r
}

// Now is the current time of the run.
func (r *Recorder) Now() Time { return r.now() }

// Operation appends a finished operation.
func (r *Recorder) Operation(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Operations++
	r.asked[o.Server] = append(r.asked[o.Server], span{o.Start, o.End})
	if o.Status != 0 {
		r.counts.Answered++
	}
	r.writeLocked(record{Operation: &o})
}

// Hop appends a server's account of an operation.
func (r *Recorder) Hop(h Hop) { r.write(record{Hop: &h}) }

// Step appends an executed step.
func (r *Recorder) Step(s Step) { r.write(record{Step: &s}) }

// Fault appends a fault that has ended.
func (r *Recorder) Fault(f Fault) { r.write(record{Fault: &f}) }

// Lifecycle appends a change of a server's state.
func (r *Recorder) Lifecycle(l Lifecycle) { r.write(record{Lifecycle: &l}) }

// Effect appends what a server's configuration was seen to do.
func (r *Recorder) Effect(e Effect) { r.write(record{Effect: &e}) }

// Late appends a direct question that waited long.
func (r *Recorder) Late(l Late) { r.write(record{Late: &l}) }

// Served appends what a server serves by itself, together with the document unless that is known already.
func (r *Recorder) Served(s Served, d Document) {
	s.Document = d.Hash
	r.Document(d)
	r.write(record{Served: &s})
}

// Document appends a discovery document once for each hash.
func (r *Recorder) Document(d Document) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents[d.Hash] {
		return
	}
	r.documents[d.Hash] = true
	r.writeLocked(record{Document: &d})
}

// HasDocument reports whether the document of that hash was recorded, so that callers need not parse it again.
func (r *Recorder) HasDocument(hash string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.documents[hash]
}

// Counts returns how much was recorded so far.
func (r *Recorder) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Asked is how many finished operations were asked of a server so far.
func (r *Recorder) Asked(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked[server])
}

// UnderWay is how many of the operations that a server was asked so far, and that have ended, were under way at some time between two.
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

// Err is the first write error, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close appends the End record and flushes. A run that failed passes its error. What comes later is no part of the run: a cluster may be held when
// it is over, and its servers go on.
func (r *Recorder) Close(failure error) error {
	end := End{At: r.now(), Complete: true}
	if failure != nil {
		end.Error = failure.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeLocked(record{End: &end})
	r.closed = true
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
