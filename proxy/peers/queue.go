package peers

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/proxy"
)

// queue is client-go's rate-limited work queue (util/workqueue) with the time as an argument. A key
// is in the queue at most once. It is given out to one caller at a time. After a failure it returns
// later.
type queue struct {
	first, last time.Duration // the delay after a first failure, and the longest delay
	retries     int           // zero: no limit
	bucket      *rate.Limiter // the bucket that all keys' retries share; nil: none

	ready    []proxy.ServerID // to be given out next, in order
	dirty    byID[struct{}]
	running  byID[struct{}]
	failures byID[int]
	waiting  []waiting // sorted by time
}

type waiting struct {
	key proxy.ServerID
	at  time.Time
}

func newQueue(p proxy.FetchingPolicy, bucket *rate.Limiter) *queue {
	return &queue{first: p.FirstRetry, last: p.LastRetry, retries: p.Retries, bucket: bucket}
}

func (q *queue) clone(now time.Time) *queue {
	c := *q
	c.ready, c.waiting = slices.Clone(q.ready), slices.Clone(q.waiting)
	c.dirty, c.running, c.failures = slices.Clone(q.dirty), slices.Clone(q.running), slices.Clone(q.failures)
	if q.bucket != nil {
		c.bucket = rate.NewLimiter(q.bucket.Limit(), q.bucket.Burst())
		if used := q.bucket.Burst() - int(q.bucket.TokensAt(now)); used > 0 {
			c.bucket.ReserveN(now, used)
		}
	}
	return &c
}

// add queues a key at once. If the key is given out, add queues it when it is done.
func (q *queue) add(key proxy.ServerID) {
	if q.dirty.has(key) {
		return
	}
	q.dirty.set(key, struct{}{})
	if !q.running.has(key) {
		q.ready = append(q.ready, key)
	}
}

// addAt queues a key for a time, unless it is already queued for an earlier time.
func (q *queue) addAt(key proxy.ServerID, at time.Time) {
	i := slices.IndexFunc(q.waiting, func(w waiting) bool { return w.key == key })
	if i >= 0 {
		if !at.Before(q.waiting[i].at) {
			return
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	i, _ = slices.BinarySearchFunc(q.waiting, waiting{key, at}, func(a, b waiting) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key, b.key))
	})
	q.waiting = slices.Insert(q.waiting, i, waiting{key, at})
}

// advance queues the keys whose time has come.
func (q *queue) advance(now time.Time) {
	for len(q.waiting) > 0 && !q.waiting[0].at.After(now) {
		q.add(q.waiting[0].key)
		q.waiting = q.waiting[1:]
	}
}

// next gives out a key.
func (q *queue) next() (proxy.ServerID, bool) {
	if len(q.ready) == 0 {
		return "", false
	}
	key := q.ready[0]
	q.ready = q.ready[1:]
	q.dirty.remove(key)
	q.running.set(key, struct{}{})
	return key, true
}

// done takes a key back. After a failure, the key is queued again, or dropped after too many
// failures.
func (q *queue) done(key proxy.ServerID, failed bool, now time.Time) (dropped bool) {
	q.running.remove(key)
	switch failures := q.failures.get(key); {
	case !failed:
		q.failures.remove(key)
	case q.first <= 0 || q.retries > 0 && failures >= q.retries:
		q.failures.remove(key)
		dropped = true
	default:
		delay := q.delay(failures)
		q.failures.set(key, failures+1)
		if q.bucket != nil {
			delay = max(delay, q.bucket.ReserveN(now, 1).DelayFrom(now))
		}
		q.addAt(key, now.Add(delay))
	}
	if q.dirty.has(key) {
		q.ready = append(q.ready, key)
	}
	return dropped
}

// delay returns the delay, which doubles with each failure, from first to last. It is never less
// than first.
func (q *queue) delay(failures int) time.Duration {
	d := q.first
	for ; failures > 0 && d < q.last; failures-- {
		d *= 2
	}
	return max(q.first, min(d, q.last))
}

// forget removes a key and its failures.
func (q *queue) forget(key proxy.ServerID) {
	q.dirty.remove(key)
	q.failures.remove(key)
	q.ready = slices.DeleteFunc(q.ready, func(k proxy.ServerID) bool { return k == key })
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiting) bool { return w.key == key })
}

// byID is a map from servers to values, as a list that is sorted by identity. Its zero value is
// empty. The simulator copies it thousands of times a second: with few servers, slices.Clone is
// faster than copying a map.
type byID[V any] []entry[V]

type entry[V any] struct {
	id    proxy.ServerID
	value V
}

func (m byID[V]) find(id proxy.ServerID) (int, bool) {
	return slices.BinarySearchFunc(m, id, func(e entry[V], id proxy.ServerID) int { return cmp.Compare(e.id, id) })
}

func (m byID[V]) has(id proxy.ServerID) bool {
	_, ok := m.find(id)
	return ok
}

// get returns the value of a server. It returns the zero value if the server is not in the map.
func (m byID[V]) get(id proxy.ServerID) (value V) {
	if i, ok := m.find(id); ok {
		return m[i].value
	}
	return value
}

func (m *byID[V]) set(id proxy.ServerID, value V) {
	i, ok := m.find(id)
	if !ok {
		*m = slices.Insert(*m, i, entry[V]{id: id})
	}
	(*m)[i].value = value
}

func (m *byID[V]) remove(id proxy.ServerID) {
	if i, ok := m.find(id); ok {
		*m = slices.Delete(*m, i, i+1)
	}
}
