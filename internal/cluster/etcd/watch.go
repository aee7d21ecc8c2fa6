package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

const (
	// finishing is how long a watch may take to read the remaining changes after its context has
	// ended.
	finishing = 15 * time.Second
	// retryAfter is the time between two attempts to watch.
	retryAfter = 200 * time.Millisecond
)

// Watch calls emit for every API object in etcd, and then for every change of one, in the order of
// revisions. It leaves out leases, addresses of servers, and events (see noise). now returns the
// time of the run. After a broken connection, Watch continues at the same revision.
//
// When ctx ends, Watch reads every change that etcd has made until then, and returns nil. It
// returns an error if changes are missing: etcd could no longer be read, it had compacted changes
// that were not read yet, or it had a value that cannot be decoded. emit is not called
// concurrently, and not after Watch has returned.
func (g Gateway) Watch(ctx context.Context, now func() history.Time, emit func(history.Object)) error {
	w := watcher{Gateway: g, now: now, emit: emit, known: map[string]history.Object{}}
	existing, revision, err := g.list(ctx, objects)
	if err != nil {
		return fmt.Errorf("list what is in etcd: %w; is etcd up and does it trust the client?", err)
	}
	slices.SortStableFunc(existing, func(a, b keyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) })
	for _, kv := range existing {
		w.take(event{KV: kv})
	}
	w.read = revision
	return errors.Join(w.follow(ctx), w.undecodable())
}

// watcher is the state of one call of Watch.
type watcher struct {
	Gateway
	now   func() history.Time
	emit  func(history.Object)
	known map[string]history.Object // the existing objects by key, without noise
	read  int64                     // every change up to this revision is read
	// unread counts the values that cannot be decoded. why is the error of the first one.
	unread int
	why    error
}

// event has the fields of mvccpb.Event that this package uses.
type event struct {
	Type string   `json:"type"` // "DELETE"; left out for "PUT"
	KV   keyValue `json:"kv"`
}

// news is a batch of events in the order of revisions, whose last revision is complete, or the
// reason why no events arrive any more.
type news struct {
	events []event
	err    error
}

// follow reads all changes after w.read until ctx ends, and then the changes that etcd has made
// until then.
func (w *watcher) follow(ctx context.Context) error {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	arriving := make(chan news)
	go w.watchOn(reading, w.read+1, arriving)
	last := int64(math.MaxInt64)
	ended := ctx.Done()
	var late <-chan time.Time
	var trouble error
	for w.read < last {
		select {
		case n := <-arriving:
			for _, e := range n.events {
				w.take(e)
				w.read = e.KV.ModRevision
			}
			if errors.Is(n.err, errCanceled) {
				return fmt.Errorf("watch etcd from revision %d: %w; later changes are unknown", w.read+1, n.err)
			}
			trouble = n.err
		case <-ended:
			ended = nil
			asking, stop := context.WithTimeout(reading, finishing)
			revision, err := w.revision(asking)
			stop()
			if err != nil {
				return fmt.Errorf("ask etcd for its last revision: %w; changes after revision %d may be missing", err, w.read)
			}
			last, late = revision, time.After(finishing)
		case <-late:
			return fmt.Errorf("read the last changes from etcd: only those up to revision %d of %d came within %s; last error: %w",
				w.read, last, finishing, cmp.Or(trouble, errors.New("none")))
		}
	}
	return nil
}

// watchOn watches from a revision until ctx ends or etcd cancels the watch. It begins again after
// every other error.
func (w *watcher) watchOn(ctx context.Context, from int64, arriving chan<- news) {
	deliver := func(n news) {
		select {
		case arriving <- n:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		err := w.stream(ctx, from, func(events []event) {
			from = events[len(events)-1].KV.ModRevision + 1
			deliver(news{events: events})
		})
		deliver(news{err: err})
		if errors.Is(err, errCanceled) {
			return
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
}

// errCanceled means that etcd will not send the requested changes.
var errCanceled = errors.New("etcd canceled the watch")

// watchRequest has the fields of etcdserverpb.WatchRequest that this package uses.
type watchRequest struct {
	Create watchCreateRequest `json:"create_request"`
}

type watchCreateRequest struct {
	Key           []byte `json:"key"`
	RangeEnd      []byte `json:"range_end"`
	StartRevision int64  `json:"start_revision,string"`
	Fragment      bool   `json:"fragment"`
}

// watchMessage is one line of the gateway's answer: an etcdserverpb.WatchResponse, or an error.
type watchMessage struct {
	Result struct {
		Canceled        bool    `json:"canceled"`
		CompactRevision int64   `json:"compact_revision,string"`
		CancelReason    string  `json:"cancel_reason"`
		Fragment        bool    `json:"fragment"` // the events of this revision continue in the next message
		Events          []event `json:"events"`
	} `json:"result"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// stream calls got for all changes from a revision on, in batches of whole revisions. It watches
// all keys, so every revision has an event. By this, the caller knows when the last revision has
// arrived. The error says why the stream ended.
func (w *watcher) stream(ctx context.Context, from int64, got func([]event)) error {
	all := []byte{0} // as a key it is the first one; as the end of a range it means no end
	body, err := w.post(ctx, "/v3/watch", watchRequest{watchCreateRequest{Key: all, RangeEnd: all, StartRevision: from, Fragment: true}})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var incomplete []event
	for lines := json.NewDecoder(body); ; {
		var m watchMessage
		if err := lines.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("etcd ended the watch")
			}
			return fmt.Errorf("read a change from etcd: %w", err)
		}
		switch r := m.Result; {
		case m.Error != nil:
			return fmt.Errorf("etcd ended the watch: %s", m.Error.Message)
		case r.CompactRevision != 0:
			return fmt.Errorf("%w: it has compacted all before revision %d", errCanceled, r.CompactRevision)
		case r.Canceled:
			return fmt.Errorf("%w: %s", errCanceled, cmp.Or(r.CancelReason, "no reason given"))
		case r.Fragment:
			incomplete = append(incomplete, r.Events...)
		case len(incomplete)+len(r.Events) > 0:
			got(append(incomplete, r.Events...))
			incomplete = nil
		}
	}
}

// take emits a change, unless it is noise.
func (w *watcher) take(e event) {
	key := string(e.KV.Key)
	if !recorded(key) {
		return
	}
	var o history.Object
	switch was, known := w.known[key]; {
	case e.Type == "DELETE" && !known:
		return // its value could not be decoded
	case e.Type == "DELETE":
		o = was
		o.Gone = true
		delete(w.known, key)
	default:
		var err error
		if o, err = decode(e.KV.Value); err != nil {
			w.unread++
			w.why = cmp.Or(w.why, fmt.Errorf("decode %s of revision %d from etcd: %w", key, e.KV.ModRevision, err))
			return
		}
		o.Key, o.Fields = key, fieldsOf(e.KV.Value)
		w.known[key] = o
	}
	o.Revision, o.At = e.KV.ModRevision, w.now()
	w.emit(o)
}

// undecodable returns an error if some value could not be decoded.
func (w *watcher) undecodable() error {
	if w.unread == 0 {
		return nil
	}
	return fmt.Errorf("%d values in etcd could not be decoded, so what exists is not fully known; the first: %w", w.unread, w.why)
}
