package peers

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/proxy"
)

// queue does what client-go's rate-limited work queue does (util/workqueue), with the time as an argument and without goroutines: each key
// is in it at most once, is not given out twice at the same time, and comes back later after a failure.
type queue struct {
	first, last time.Duration // delays after a first failure, and at most
	retries     int           // zero: endless
	bucket      *rate.Limiter // what all keys' retries share; nil: none

	ready    []proxy.ServerID // to be given out, in order
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

// add puts a key in at once. One that is being worked at comes back after that.
func (q *queue) add(key proxy.ServerID) {
	if q.dirty.has(key) {
		return
	}
	q.dirty.set(key, struct{}{})
	if !q.running.has(key) {
		q.ready = append(q.ready, key)
	}
}

// addAt puts a key in at that time, or earlier if it is to come earlier anyway.
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

// advance puts in what has waited long enough.
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

// done takes a key back. After a failure it comes again, unless that has happened too often; dropped says that it will not.
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

// delay doubles with each failure. It is first even where last is less, as in no policy that is meant.
func (q *queue) delay(failures int) time.Duration {
	d := q.first
	for ; failures > 0 && d < q.last; failures-- {
		d *= 2
	}
	return max(q.first, min(d, q.last))
}

// forget takes a key out, as if it had never been in.
func (q *queue) forget(key proxy.ServerID) {
	q.dirty.remove(key)
	q.failures.remove(key)
	q.ready = slices.DeleteFunc(q.ready, func(k proxy.ServerID) bool { return k == key })
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiting) bool { return w.key == key })
}
